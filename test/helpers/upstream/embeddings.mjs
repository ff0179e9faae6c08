/** The embeddings APIs of all providers: how an answer looks. One text always gets the same vector. */
import { createHash } from 'node:crypto'
import { checkOf, faults } from './embeddings-rules.mjs'

const DIMENSIONS = 8

/** Numbers that float32 holds exactly, so that both forms of a vector say the same. */
function vectorOf(input, size = DIMENSIONS) {
  const hash = createHash('sha512').update(String(input)).digest()
  return Array.from({ length: size }, (_, at) => (hash[at % 64] - 128 + at) / 1024)
}

const base64 = vector => Buffer.from(Float32Array.from(vector).buffer).toString('base64')
const charactersOf = input => (typeof input === 'string' ? input.length : 4 * [input].flat().length)
const listOf = input => (typeof input === 'string' || typeof input[0] === 'number' ? [input] : input)
/** Of length 1, as Google's whole vectors are; those made shorter are not. */
const unit = (vector, size) => (size ? vector : vector.map(value => value / Math.hypot(...vector)))

const entriesOf = (inputs, size, isBase64) =>
  inputs.map((input, index) => {
    const vector = vectorOf(input, size)
    return { object: 'embedding', index, embedding: isBase64 ? base64(vector) : vector }
  })

/** A wire of this server; `inputs`, `whole` and `usage` are what the provider's form makes of a request. */
const wire = ({ name, path, api, fault, inputs, whole, tells = true }) => ({
  name,
  path,
  check: checkOf(api, fault),
  // No choices, so that nothing is counted but the prompt.
  read: body => ({
    model: body.model,
    n: 0,
    text: '',
    characters: inputs(body).reduce((sum, input) => sum + charactersOf(input), 0),
    tool: null,
    toolResult: null,
  }),
  claims: answer => tells && answer.usage !== null,
  whole,
  frames: () => [],
  error: status => fault(status, `Simulated failure ${status}.`),
  errorEvent: payload => `data: ${JSON.stringify(payload)}\n\n`,
})

/** The OpenAI form; `options` are the fields of one request. */
const openAiForm = (answer, body, { size, isBase64, usage }) => ({
  object: 'list',
  data: entriesOf(listOf(body.input), size, isBase64),
  model: answer.model,
  ...(answer.usage && { usage }),
})

/** The address of a method, with whatever project and place stand before it. */
const vertexPath = method =>
  new RegExp(`(?:/v1(?:beta1)?/projects/[^/]+/locations/[^/]+)?/publishers/google/models/(?<model>[^/:]+):${method}$`)

const inputs = body => listOf(body.input)
const tokens = ({ meter }) => ({ prompt_tokens: meter.prompt, total_tokens: meter.prompt })

/** @type {import('./server.mjs').Wire[]} */
export const embeddings = [
  wire({
    name: 'openai-embeddings',
    path: '/v1/embeddings',
    api: 'openai',
    fault: faults.openai,
    inputs,
    whole: (answer, body) =>
      openAiForm(answer, body, {
        size: body.dimensions,
        isBase64: body.encoding_format === 'base64',
        usage: tokens(answer),
      }),
  }),
  wire({
    name: 'mistral-embeddings',
    path: '/v1m/embeddings',
    api: 'mistral',
    fault: faults.mistral,
    inputs,
    whole: (answer, body) => ({
      id: `mistral${answer.id}`,
      ...openAiForm(answer, body, {
        size: body.output_dimension,
        isBase64: body.encoding_format === 'base64',
        usage: { ...tokens(answer), completion_tokens: 0, prompt_audio_seconds: null },
      }),
    }),
  }),
  wire({
    name: 'voyage-embeddings',
    path: '/v1v/embeddings',
    api: 'voyage',
    fault: faults.detail,
    inputs,
    // In any order, and the total alone.
    whole(answer, body) {
      const { meter } = answer
      const size = body.output_dimension
      const form = { size, isBase64: body.encoding_format === 'base64', usage: { total_tokens: meter.prompt } }
      const said = openAiForm(answer, body, form)
      return { ...said, data: said.data.reverse() }
    },
  }),
  wire({
    name: 'jina-embeddings',
    path: '/v1j/embeddings',
    api: 'jina',
    fault: faults.detail,
    inputs,
    whole(answer, body) {
      const form = { size: body.dimensions, isBase64: body.embedding_type === 'base64', usage: tokens(answer) }
      const { model, object, usage, data } = openAiForm(answer, body, form)
      return { model, object, usage, data }
    },
  }),
  wire({
    name: 'cohere-embeddings',
    path: '/v2/embed',
    api: 'cohere',
    fault: faults.cohere,
    inputs: body => body.texts,
    whole(answer, body) {
      const vectors = body.texts.map(text => vectorOf(text, body.output_dimension))
      return {
        id: `cohere${answer.id}`,
        embeddings: Object.fromEntries(
          body.embedding_types.map(type => [type, type === 'base64' ? vectors.map(base64) : vectors]),
        ),
        texts: body.texts,
        meta: {
          api_version: { version: '2' },
          ...(answer.usage && { billed_units: { input_tokens: answer.meter.prompt } }),
        },
        response_type: 'embeddings_by_type',
      }
    },
  }),
  wire({
    name: 'gemini-embeddings',
    path: /\/v1beta\/models\/(?<model>[^/:]+):batchEmbedContents$/,
    api: 'google',
    fault: faults.google,
    tells: false,
    inputs: ({ requests }) => requests.map(({ content }) => content.parts[0].text),
    whole: (_answer, { requests }) => ({
      embeddings: requests.map(({ content, outputDimensionality: size }) => ({
        values: unit(vectorOf(content.parts[0].text, size), size),
      })),
    }),
  }),
  wire({
    name: 'vertex-embeddings',
    path: vertexPath('predict'),
    api: 'google',
    fault: faults.google,
    inputs: ({ instances }) => instances.map(({ content }) => content),
    whole: (answer, { instances, parameters }) => ({
      predictions: instances.map(({ content }, index) => ({
        embeddings: {
          values: unit(vectorOf(content, parameters.outputDimensionality), parameters.outputDimensionality),
          // All of the prompt's tokens, on the first of its texts.
          ...(answer.usage && { statistics: { truncated: false, token_count: index === 0 ? answer.meter.prompt : 0 } }),
        },
      })),
    }),
  }),
  wire({
    name: 'vertex-embed-content',
    path: vertexPath('embedContent'),
    api: 'google',
    fault: faults.google,
    inputs: ({ content }) => [content.parts[0].text],
    whole(answer, { content, embedContentConfig: { outputDimensionality: size } }) {
      return {
        embedding: { values: unit(vectorOf(content.parts[0].text, size), size) },
        ...(answer.usage && { usageMetadata: { promptTokenCount: answer.meter.prompt } }),
        truncated: false,
      }
    },
  }),
]
