/** Values of shipped files, parsed at build time: parsing YAML would dominate a cold start. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** The bundle places it beside this module; absent when the code runs from its sources. */
const BUILT = new URL('./parsed.json', import.meta.url)

/** Key of a text: a file that an operator has changed has no value here, and is parsed. */
export const keyOf = (text: string): string => createHash('sha256').update(text).digest('base64')

let known: Record<string, string> | undefined

/** The plain values of `text`, as new objects; undefined for a text unknown at build time. */
export function parsedAtBuild(text: string): unknown {
  known ??= read()
  const json = known[keyOf(text)]
  return json === undefined ? undefined : JSON.parse(json)
}

function read(): Record<string, string> {
  try {
    return JSON.parse(readFileSync(BUILT, 'utf8')) as Record<string, string>
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw thrown
  }
}
