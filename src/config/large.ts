/** Large files are parsed beside the event loop: a millisecond for each kilobyte would keep every stream waiting. */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { ConfigError, type Position, type Sought } from './error.ts'
import type { Source } from './source.ts'
import { parseYamlFile } from './yaml.ts'

/** Characters above which a thread is worth its start. */
const LARGE = 32 * 1024
/** Beside the bundle; absent when the code runs from its sources, where everything is parsed here. */
const THREAD = new URL('./parse-thread.js', import.meta.url)

/** A request to the thread: the values of a file, or the position of one of them. */
export interface ParseRequest {
  readonly name: string
  readonly text: string
  readonly place?: Pick<Sought, 'path' | 'at'>
}
/** What it answers: values are read from JSON in less time than they are copied. */
export type Parsed =
  | { readonly json: string }
  | { readonly fault: { readonly position: Position; readonly message: string } }
  | { readonly position: Position }

/** The plain values of a file, references as they stand. Rejects with a ConfigError. */
export async function parseFile(source: Source): Promise<unknown> {
  if (source.text.length <= LARGE || !existsSync(THREAD)) return parseYamlFile(source)
  const { name, text } = source
  const parsed = await inThread({ name, text })
  if ('json' in parsed) return JSON.parse(parsed.json)
  if ('fault' in parsed) throw new ConfigError(name, parsed.fault.position, parsed.fault.message)
  throw new Error(`the thread that parses ${name} answered something else`)
}

/** What was thrown, once it is known where the fault stands. */
export async function located(thrown: unknown): Promise<unknown> {
  if (!(thrown instanceof ConfigError)) return thrown
  const { file, sought } = thrown
  if (!sought || sought.text.length <= LARGE || !existsSync(THREAD)) return thrown
  const { text, path, at } = sought
  // Where the thread fails, it is found here.
  const found = await inThread({ name: file, text, place: { path, at } }).catch(() => undefined)
  if (found && 'position' in found) thrown.position = found.position
  return thrown
}

const inThread = (request: ParseRequest): Promise<Parsed> =>
  new Promise((resolve, reject) => {
    const thread = new Worker(THREAD, { workerData: request })
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', () => reject(new Error(`the thread that parses ${request.name} ended too early`)))
  })
