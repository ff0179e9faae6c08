/** Counting of prompts by a provider, whose answer is one JSON object. */
import { type CountForm, errors, isObject, type Json } from '../../src/plugin.ts'
import { parsed, WholeDecoder } from './whole.ts'

/** `tokensIn` gives the count that an answer holds; undefined where it holds none, which is an error. */
export const counter = (encode: CountForm['encode'], tokensIn: (answer: Json) => number | undefined): CountForm => ({
  encode,
  decoder: () =>
    new WholeDecoder(frame => {
      const answer = parsed(frame)
      const tokens = isObject(answer) ? tokensIn(answer) : undefined
      if (tokens === undefined) throw errors.invalidAnswer('it holds no count of tokens')
      // The prompt was read to be counted, and no answer was made of it.
      return [
        { type: 'usage', usage: { prompt: 0, completion: 0 } },
        { type: 'result', value: { tokens } },
      ]
    }),
})

/** The fields of `body` that are named. */
export const only = (body: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.flatMap(name => (body[name] === undefined ? [] : [[name, body[name]]])))
