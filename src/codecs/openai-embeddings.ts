/** Client wire of `POST /v1/embeddings` (docs/contract.md#embeddings). */
import type { Codec, Encoded } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { errors } from '../lib/error.ts'
import { type EmbeddingRequest, type Embeddings, embeddingRequest } from '../operations/embeddings/request.ts'
import { answerIdOf, answerModelOf } from './accounting.ts'
import { checkedBy, validator } from './validate.ts'
import { givenVectors, toBase64, toNumbers, type Vector } from './vectors.ts'
import { type Result, ResultEncoder } from './whole.ts'

const validate = validator(embeddingRequest)

/** Takes texts and token ids; vectors as numbers or base64. */
export const openAiEmbeddings = {
  wire: 'openai.embeddings',
  decode: (body, ex) => canonical(validate(body), ex),
  encoder: ex => new ResultEncoder(ex, embeddingsOf),
  ...checkedBy(validate),
} satisfies Codec<'embeddings'>

/** Known fields only. Providers get the organization as the user, not the caller's value. */
function canonical({ model, input, encoding_format, dimensions }: EmbeddingRequest, ex: Exchange): EmbeddingRequest {
  checkInputs(input)
  return {
    model,
    input,
    ...(encoding_format != null && { encoding_format }),
    ...(dimensions != null && { dimensions }),
    ...(ex.caller.principal && { user: ex.caller.principal.orgId }),
  }
}

/** Writes an answer with an `id`. Passes the bytes of the provider on where their encoding is the requested one. */
function embeddingsOf(result: Result, ex: Exchange): Encoded {
  const { encoding_format } = ex.request as EmbeddingRequest
  const asked = encoding_format ?? 'float'
  const { value, bytes } = result
  const tokens = ex.usage.prompt ?? 0
  const about = {
    model: answerModelOf(ex),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    id: `embd-${answerIdOf(ex)}`,
  }
  const head = '{"object":"list","data":'
  const tail = `,${JSON.stringify(about).slice(1)}`
  // The provider's bytes if the encoding matches.
  if (bytes !== undefined && (value as Embeddings).encoding === asked) {
    return typeof bytes === 'string' ? head + bytes + tail : [Buffer.from(head), bytes, Buffer.from(tail)]
  }
  const data = givenVectors(result).map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: encoded(vector, asked),
  }))
  return head + JSON.stringify(data) + tail
}

function encoded(vector: Vector, asked: Embeddings['encoding']): Vector {
  if (typeof vector === 'string') return asked === 'base64' ? vector : toNumbers(vector)
  return asked === 'float' ? vector : toBase64(vector)
}

/** Inputs of one request (docs/contract.md#embeddings). */
const MAX_INPUTS = 2048
const MAX_TOKEN_ID = 0xffff_ffff

/** Throws a 400 that names the first empty or differing input, or reports too many. */
function checkInputs(input: EmbeddingRequest['input']): void {
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
