/**
 * Rules for the inputs of an embeddings request (docs/contract.md#embeddings): the first determines the kind of all.
 */
import { errors } from '../lib/error.ts'
import type { EmbeddingRequest } from '../operations/embeddings/request.ts'

/** Inputs of one request (docs/contract.md#embeddings). */
const MAX_INPUTS = 2048
const MAX_TOKEN_ID = 0xffff_ffff

/** Throws a 400 that names the first empty or differing input, or reports too many. */
export function checkInputs(input: EmbeddingRequest['input']): void {
  if (input.length === 0) throw errors.invalidField('input', 'must not be empty')
  if (typeof input === 'string') return
  const [first] = input
  if (typeof first === 'number') {
    checkTokens(input, 'input')
    return
  }
  if (input.length > MAX_INPUTS)
    throw errors.invalidField('input', `must hold at most ${MAX_INPUTS} inputs, got ${input.length}`)
  if (typeof first === 'string') checkTexts(input)
  else checkLists(input)
}

function checkTexts(texts: readonly unknown[]): void {
  for (const [index, text] of texts.entries()) {
    if (typeof text !== 'string')
      throw errors.invalidField(`input[${index}]`, 'must be a string, like the inputs before it')
    if (text === '') throw errors.invalidField(`input[${index}]`, 'must not be empty')
  }
}

function checkLists(lists: readonly unknown[]): void {
  for (const [index, tokens] of lists.entries()) {
    if (!Array.isArray(tokens))
      throw errors.invalidField(`input[${index}]`, 'must be a string, a token id or an array of token ids')
    if (tokens.length === 0) throw errors.invalidField(`input[${index}]`, 'must not be empty')
    checkTokens(tokens, `input[${index}]`)
  }
}

function checkTokens(tokens: readonly unknown[], at: string): void {
  const wrong = tokens.findIndex(id => typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id > MAX_TOKEN_ID)
  if (wrong >= 0) throw errors.invalidField(`${at}[${wrong}]`, 'must be a token id, an integer of 0 or more')
}
