/** Vectors of the demo provider: a sum over the words of an input, so that texts with common words are close. */
import { createHash } from 'node:crypto'
import { SimulatedError } from '../../core/operation.ts'

/** Fields of an OpenAI embeddings request that the demo reads. */
export interface DemoInputs {
  input: string | (string | number | number[])[]
  encoding_format?: string
  dimensions?: number
}

const DIMENSIONS = 256
const MAX_DIMENSIONS = 4096
const MAX_TOKENS = 8192
/** Tokens of all inputs together: each of them is hashed. */
const MAX_ALL_TOKENS = 32_768
/** Numbers of all vectors together. */
const MAX_NUMBERS = 524_288

/** The whole answer. Throws a SimulatedError for unsupported requests. */
export function embed(request: DemoInputs & { model: string }): object {
  const inputs = inputsOf(request.input)
  const size = request.dimensions ?? DIMENSIONS
  if (size > MAX_DIMENSIONS)
    throw new SimulatedError(`dimensions: at most ${MAX_DIMENSIONS}, got ${size}`, 'dimensions')
  if (inputs.length * size > MAX_NUMBERS) {
    throw new SimulatedError(`input: at most ${Math.floor(MAX_NUMBERS / size)} inputs of ${size} dimensions`, 'input')
  }
  const longest = inputs.reduce((most, words) => Math.max(most, words.length), 0)
  if (longest > MAX_TOKENS) {
    const message = `input: at most ${MAX_TOKENS} tokens each, got ${longest}`
    throw new SimulatedError(message, 'input', 'context_length_exceeded')
  }
  const tokens = inputs.reduce((sum, words) => sum + words.length, 0)
  if (tokens > MAX_ALL_TOKENS) {
    const message = `input: at most ${MAX_ALL_TOKENS} tokens of all inputs, got ${tokens}`
    throw new SimulatedError(message, 'input', 'context_length_exceeded')
  }
  const data = inputs.map((words, index) => {
    const vector = vectorOf(words, size)
    const embedding = request.encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector]
    return { object: 'embedding', index, embedding }
  })
  return { object: 'list', data, model: request.model, usage: { prompt_tokens: tokens, total_tokens: tokens } }
}

/** The words of each input; token ids count as words. */
function inputsOf(input: DemoInputs['input']): string[][] {
  if (typeof input === 'string') return [wordsOf(input)]
  if (typeof input[0] === 'number') return [input.map(String)]
  return input.map(one => (typeof one === 'string' ? wordsOf(one) : [one].flat().map(String)))
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text]

/** A unit vector. The hash of each word gives its direction. */
function vectorOf(words: readonly string[], size: number): Float32Array {
  const sum = new Float32Array(size)
  for (const word of words) {
    const hash = createHash('sha256').update(word).digest()
    for (let at = 0; at < hash.length; at += 4) {
      sum[hash.readUInt16LE(at) % size]! += hash[at + 2]! < 128 ? -1 : 1
    }
  }
  const length = Math.hypot(...sum) || 1
  return sum.map(value => value / length)
}
