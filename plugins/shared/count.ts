/** Prompt counting by a provider, whose answer is one JSON object. */
import { type CountForm, errors, isObject, type Json } from '../../src/plugin.ts'
import { parsed, WholeDecoder } from './whole.ts'

/** `tokensIn` extracts the count from an answer; undefined is an error. */
export const counter = (encode: CountForm['encode'], tokensIn: (answer: Json) => number | undefined): CountForm => ({
  encode,
  decoder: () =>
    new WholeDecoder(frame => {
      const answer = parsed(frame)
      const tokens = isObject(answer) ? tokensIn(answer) : undefined
      if (tokens === undefined) throw errors.invalidAnswer('it holds no count of tokens')
      // The prompt was counted and no answer was generated.
      return [
        { type: 'usage', usage: { prompt: 0, completion: 0 } },
        { type: 'result', value: { tokens } },
      ]
    }),
})

/** The named fields of `body`. */
export const only = (body: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.flatMap(name => (body[name] === undefined ? [] : [[name, body[name]]])))
