/** Shared by the moderation wires: a result for each text, or one for all parts (docs/contract.md#moderations). */
import {
  countIn,
  errors,
  isObject,
  type Json,
  type ModerationRequest,
  type ModerationResult,
  objectIn,
  resultsWanted,
  type Target,
  type Translator,
} from '../../src/plugin.ts'
import { errorIn, parsed, plainError, WholeDecoder } from './answer.ts'

/** A moderation wire; `read` makes a result of each entry of `results`. */
export const moderationWire = (
  wire: string,
  encode: Translator<'moderations'>['encode'],
  read: (entry: Json) => ModerationResult,
): Translator<'moderations'> => ({
  op: 'moderations',
  wire,
  encode,
  decoder: (_mode, target, input) => decoder(read, target, input!),
  error: plainError,
})

const decoder = (read: (entry: Json) => ModerationResult, target: Target, input: Readonly<ModerationRequest>) =>
  new WholeDecoder(frame => {
    const answer = parsed(frame)
    const list = objectIn(answer).results
    if (!Array.isArray(list)) throw errorIn(answer, 'list of results', target)
    const wanted = resultsWanted(input)
    if (list.length !== wanted) throw errors.invalidAnswer(`it holds ${list.length} results for ${wanted} inputs`)
    const results = list.map(entry => {
      // Without categories a client would take the text for harmless.
      if (!isObject(entry) || !isObject(entry.categories)) throw errors.invalidAnswer('a result has no categories')
      return read(entry)
    })
    const { usage } = answer as Json
    const prompt = isObject(usage) ? countIn(usage.prompt_tokens) : undefined
    return [
      { type: 'usage', usage: prompt === undefined ? { request: 1 } : { request: 1, prompt } },
      { type: 'result', value: { results } },
    ]
  })

/** The members of `value` that are of this type, by name. */
export function membersOf<T>(value: unknown, is: (member: unknown) => member is T): Record<string, T> {
  if (isObject(value) && holds(value, is)) return value
  const members = isObject(value) ? Object.entries(value) : []
  return Object.fromEntries(members.filter((entry): entry is [string, T] => is(entry[1])))
}
function holds<T>(value: Json, is: (member: unknown) => member is T): value is Record<string, T> {
  for (const name in value) if (!is(value[name])) return false
  return true
}

/** For `membersOf` of `categories`. */
export const isFlag = (value: unknown): value is boolean => typeof value === 'boolean'
/** For `membersOf` of `category_scores`. */
export const isScore = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
/** For `membersOf` of `category_applied_input_types`. */
export const isTypes = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(type => typeof type === 'string')
