/** Parses large files in a thread: a millisecond per kilobyte would stall every stream. */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { FairShare } from '../limits/share.ts'
import { ConfigError, type Position, type Sought } from './error.ts'
import type { Source } from './source.ts'
import { type Bounds, parseYamlFile } from './yaml.ts'

/** Characters above which starting a thread pays off. */
const MIN_THREAD_CHARACTERS = 32 * 1024
/** Each has a heap of its own; further texts wait. */
const MAX_THREADS = 4
/** The bundle places it beside this module; absent when the code runs from its sources, which parse everything here. */
const THREAD = new URL('./parse-thread.js', import.meta.url)

/** A request to the thread: parse a file, or find the position of a value. */
export interface ParseRequest {
  readonly name: string
  readonly text: string
  readonly bounds?: Bounds | undefined
  readonly place?: Pick<Sought, 'path' | 'at'>
}
/** Answer of the thread, as JSON: parsing it is faster than a structured clone. */
export type Parsed =
  | { readonly json: string }
  | { readonly fault: { readonly position: Position; readonly message: string } }
  | { readonly position: Position }

/**
 * The plain values of a file, references unresolved; a text above `large` characters is parsed in a thread. Rejects with a
 * ConfigError, also beyond `bounds`.
 */
export async function parseFile(
  source: Source,
  large: number = MIN_THREAD_CHARACTERS,
  bounds?: Bounds,
): Promise<unknown> {
  if (source.text.length <= large || !existsSync(THREAD)) return parseYamlFile(source, bounds)
  const { name, text } = source
  const parsed = await inThread({ name, text, bounds })
  if ('json' in parsed) return JSON.parse(parsed.json)
  if ('fault' in parsed) throw new ConfigError(name, parsed.fault.position, parsed.fault.message)
  throw new Error(`the thread that parses ${name} sent an unexpected answer`)
}

/** The thrown error with its position resolved, in a thread for a text above `large` characters. */
export async function located(thrown: unknown, large: number = MIN_THREAD_CHARACTERS): Promise<unknown> {
  if (!(thrown instanceof ConfigError)) return thrown
  const { file, sought } = thrown
  if (!sought || sought.text.length <= large || !existsSync(THREAD)) return thrown
  const { text, path, at } = sought
  // When the thread fails, this thread finds the position.
  const found = await inThread({ name: file, text, place: { path, at } }).catch(() => undefined)
  if (found && 'position' in found) thrown.position = found.position
  return thrown
}

const threads = new FairShare(MAX_THREADS, undefined, { alone: 1, contended: 1 })

const inThread = async (request: ParseRequest): Promise<Parsed> =>
  (await threads.during('', {}, () => answerOf(request)))!

const answerOf = (request: ParseRequest): Promise<Parsed> =>
  new Promise((resolve, reject) => {
    const thread = new Worker(THREAD, { workerData: request })
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', () => reject(new Error(`the thread that parses ${request.name} ended too early`)))
  })
