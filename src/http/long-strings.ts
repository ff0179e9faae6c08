/** Parses a body whose long strings are kept as they were written. */
import { type Body, RawStrings } from '../core/raw-strings.ts'
import { markOf, restored } from '../core/string-marks.ts'

/**
 * The body with its long strings. `spans`: where these begin and end, in turn, with their quotes. `start`: where the body
 * begins. `parse` reads the rest, in which marks stand for them. Throws a SyntaxError for invalid JSON.
 */
export function withRawStrings(
  body: Buffer,
  spans: readonly number[],
  start: number,
  parse: (json: string) => unknown,
): Body {
  if (spans.length === 0) return { value: parse(body.toString('utf8', start)) }
  const rawStrings = new RawStrings()
  let json = ''
  let at = start
  for (let span = 0; span < spans.length; span += 2) {
    const [from, to] = [spans[span]!, spans[span + 1]!]
    json += `${body.toString('utf8', at, from)}"${markOf(rawStrings.size)}"`
    rawStrings.add(JSON.parse(body.toString('utf8', from, to)) as string, body.subarray(from, to))
    at = to
  }
  const value = parse(json + body.toString('utf8', at))
  return { value: restored(value, index => rawStrings.textAt(index)), rawStrings }
}
