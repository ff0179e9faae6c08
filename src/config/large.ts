/** Large files are parsed beside the event loop: a millisecond for each kilobyte would keep every stream waiting. */
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { ConfigError } from './error.ts'
import type { Source } from './source.ts'
import { parseYamlFile } from './yaml.ts'

/** Characters above which a thread is worth its start. */
const LARGE = 32 * 1024
/** Beside the bundle; absent when the code runs from its sources, where everything is parsed here. */
const THREAD = new URL('./parse-thread.js', import.meta.url)

/** What the thread answers: values are read from JSON in less time than they are copied. */
export type Parsed =
  | { readonly json: string }
  | { readonly fault: { readonly line: number; readonly column: number; readonly message: string } }

/** The plain values of a file, references as they stand. Rejects with a ConfigError. */
export async function parseFile(source: Source): Promise<unknown> {
  if (source.text.length <= LARGE || !existsSync(THREAD)) return parseYamlFile(source)
  const { name, text } = source
  const parsed = await new Promise<Parsed>((resolve, reject) => {
    const thread = new Worker(THREAD, { workerData: { name, text } })
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', () => reject(new Error(`the thread that parses ${name} ended too early`)))
  })
  if ('json' in parsed) return JSON.parse(parsed.json)
  const { line, column, message } = parsed.fault
  throw new ConfigError(name, line, column, message)
}
