/** Client wires of Google's embeddings: `embedContent` and `batchEmbedContents` (docs/contributing/wire-sources.md#gemini). */
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { type Infer, s } from '../core/schema.ts'
import { errors } from '../lib/error.ts'
import type { EmbeddingRequest } from '../operations/embeddings/request.ts'
import { metadataOf } from './accounting.ts'
import { credentials } from './gemini/credentials.ts'
import { usageOf } from './gemini/encoder.ts'
import { geminiError } from './gemini/error.ts'
import { normalized } from './gemini/names.ts'
import { validator } from './validate.ts'
import { givenVectors, toNumbers, type Vector } from './vectors.ts'
import { type Result, ResultEncoder } from './whole.ts'

/** OpenAI's limit per request. */
const MAX_REQUESTS = 2048

const text = s.maybe(s.string())
const size = s.maybe(s.integer({ minimum: 1, maximum: 1_000_000 }))
const options = { taskType: text, title: text, outputDimensionality: size }
const one = s.open({
  model: text,
  content: s.open({ parts: s.array(s.open({ text }), { minItems: 1 }) }),
  embedContentConfig: s.maybe(s.open(options)),
  ...options,
})
const validateOne = validator(one)
const validateBatch = validator(s.open({ requests: s.array(one, { minItems: 1 }) }))
type Given = Infer<typeof one>

interface Wanted {
  readonly text: string
  readonly dimensions: number | undefined
  readonly task: string | undefined
  readonly title: string | undefined
}

/** `at`: path of the request, with its dot. Throws a 400 for content that is not text. */
function wantedOf(given: Given, at: string): Wanted {
  const { outputDimensionality: own, taskType, title } = given
  const config = given.embedContentConfig as Partial<Given> | null | undefined
  const texts = given.content.parts.map(part => part.text ?? '')
  const empty = texts.indexOf('')
  if (empty >= 0) {
    const path = `${at}content.parts[${empty}].text`
    throw errors.invalidField(path, 'must be a text that is not empty; only text is supported')
  }
  return {
    text: texts.join('\n'),
    dimensions: own ?? config?.outputDimensionality ?? undefined,
    task: taskType ?? config?.taskType ?? undefined,
    title: title ?? config?.title ?? undefined,
  }
}

function canonical(all: readonly Wanted[], ex: Exchange): EmbeddingRequest {
  const [first] = all
  const differs = (['dimensions', 'task', 'title'] as const).find(name => all.some(one => one[name] !== first![name]))
  if (differs) {
    const field = { dimensions: 'outputDimensionality', task: 'taskType', title: 'title' }[differs]
    throw errors.invalidField('requests', `must all have the same ${field}`)
  }
  const { dimensions, task, title } = first!
  const request: EmbeddingRequest = { model: ex.http.params.model!, input: all.map(({ text }) => text) }
  if (dimensions !== undefined) request.dimensions = dimensions
  if (task !== undefined) request.task_type = task
  if (title !== undefined) request.title = title
  if (ex.caller.principal) request.user = ex.caller.principal.orgId
  return request
}

function batchOf(body: unknown, ex: Exchange): EmbeddingRequest {
  const { requests } = validateBatch(normalized(body))
  if (requests.length > MAX_REQUESTS) {
    throw errors.invalidField('requests', `must hold at most ${MAX_REQUESTS}, got ${requests.length}`)
  }
  const other = requests.findIndex(({ model }) => model && model.replace(/^models\//, '') !== ex.http.params.model)
  if (other >= 0) {
    const at = `requests[${other}].model`
    throw errors.invalidField(at, `must be the model of the path, "models/${ex.http.params.model}"`)
  }
  return canonical(
    requests.map((request, i) => wantedOf(request, `requests[${i}].`)),
    ex,
  )
}

const writer = (isBatch: boolean) => (result: Result, ex: Exchange) => {
  const vectors = givenVectors(result)
  const tail = JSON.stringify({ usageMetadata: usageOf(ex), gateway: metadataOf(ex) }).slice(1)
  return isBatch
    ? `{"embeddings":${JSON.stringify(vectors.map(valuesOf))},${tail}`
    : `{"embedding":${JSON.stringify(valuesOf(vectors[0]!))},${tail}`
}

const valuesOf = (vector: Vector) => ({ values: typeof vector === 'string' ? toNumbers(vector) : vector })

const codec = (wire: string, decode: (body: unknown, ex: Exchange) => EmbeddingRequest, isBatch: boolean) =>
  ({
    wire,
    decode,
    encoder: ex => new ResultEncoder(ex, writer(isBatch), 'application/json; charset=UTF-8'),
    credentials,
    error: geminiError,
    requestSchema: (isBatch ? validateBatch : validateOne).json,
    prepare: () => {
      validateOne.prepare()
      validateBatch.prepare()
    },
  }) satisfies Codec<'embeddings'>

/** One text; answers one embedding. */
export const embedContent = codec(
  'gemini.embed',
  (body, ex) => canonical([wantedOf(validateOne(normalized(body)), '')], ex),
  false,
)
/** Up to 2,048 texts with the same settings; answers a list. */
export const batchEmbedContents = codec('gemini.batch-embed', batchOf, true)
