/** Google's API below `/v1beta`, and its methods below `/v1`. */
import { s } from '../../core/schema.ts'
import { googleError } from '../errors.ts'
import { answered, named, orNull, type Row, type Rows } from '../row.ts'
import { metadata } from './accounting.ts'
import { googleModel } from './catalogue.ts'

const part = named(
  'GeneratedPart',
  s.open({
    text: s.optional(s.string()),
    thought: s.optional(s.boolean()),
    thoughtSignature: s.optional(s.string()),
    functionCall: s.optional(s.open({ id: s.optional(s.string()), name: s.string(), args: s.open({}) })),
    inlineData: s.optional(s.open({ mimeType: s.string(), data: s.string() })),
    fileData: s.optional(s.open({ mimeType: s.optional(s.string()), fileUri: s.string() })),
  }),
)
const usage = named(
  'GoogleUsage',
  s.open({
    promptTokenCount: s.integer(),
    candidatesTokenCount: s.integer(),
    totalTokenCount: s.integer(),
    thoughtsTokenCount: s.optional(s.integer()),
    cachedContentTokenCount: s.optional(s.integer()),
    cost: s.optional(orNull(s.number())),
    info: s.optional(s.string()),
  }),
)
const answer = named(
  'GenerateContentResponse',
  s.open({
    candidates: s.array(
      s.open({
        content: s.open({ role: s.string(), parts: s.array(part) }),
        index: s.integer(),
        finishReason: s.optional(s.string()),
      }),
    ),
    usageMetadata: s.optional(usage),
    modelVersion: s.string(),
    responseId: s.string(),
    gateway: s.optional(metadata),
  }),
)
const embedding = s.open({ values: s.array(s.number()) })
const counted = { usageMetadata: usage, gateway: metadata }

const model = { description: 'A model by its id, an alias, or with its provider before it.', example: 'demo' }
const vectors = { ...model, example: 'demo-embed' }
const alt = { alt: { description: '`sse` for server-sent events; a JSON array otherwise.', example: 'sse' } }
const common = { tag: 'Google', errors: 'GoogleError' } as const
const ask = { contents: [{ role: 'user', parts: [{ text: 'Say hello in one word.' }] }] }
const embed = (text: string) => ({ content: { parts: [{ text }] } })

const methods: Readonly<Record<string, Row>> = {
  generateContent: {
    ...common,
    id: 'generateContent',
    summary: "Answer a conversation, in the form of Google's clients",
    path: { model },
    body: 'GenerateContentRequest',
    examples: { whole: { summary: 'A question', value: ask } },
    answers: answered('The answer.', answer),
  },
  streamGenerateContent: {
    ...common,
    id: 'streamGenerateContent',
    summary: "Stream an answer, in the form of Google's clients",
    path: { model },
    query: alt,
    body: 'GenerateContentRequest',
    examples: { streamed: { summary: 'A question', value: ask } },
    answers: {
      200: {
        description: 'Pieces of the answer.',
        content: {
          'text/event-stream': s.either(answer, googleError),
          'application/json': s.array(s.either(answer, googleError)),
        },
      },
    },
  },
  countTokens: {
    ...common,
    id: 'countTokens',
    summary: 'Count the tokens of a conversation',
    path: { model },
    body: 'CountTokensRequest',
    examples: { count: { summary: 'A question', value: ask } },
    answers: answered('The number of tokens.', named('GoogleTokenCount', s.open({ totalTokens: s.integer() }))),
  },
  embedContent: {
    ...common,
    id: 'embedContent',
    summary: 'Embed one text',
    path: { model: vectors },
    body: 'EmbedContentRequest',
    examples: { one: { summary: 'One text', value: embed('A cat purrs.') } },
    answers: answered('The vector.', named('EmbedContentResponse', s.open({ embedding, ...counted }))),
  },
  batchEmbedContents: {
    ...common,
    id: 'batchEmbedContents',
    summary: 'Embed texts',
    path: { model: vectors },
    body: 'BatchEmbedContentsRequest',
    examples: {
      two: { summary: 'Two texts', value: { requests: [embed('A cat purrs.'), embed('A dog barks.')] } },
    },
    answers: answered(
      'The vectors.',
      named('BatchEmbedContentsResponse', s.open({ embeddings: s.array(embedding), ...counted })),
    ),
  },
}

const at = (base: string, suffix: string): Rows =>
  Object.fromEntries(
    Object.entries(methods).map(([name, row]) => [`POST ${base}/{+model}:${name}`, { ...row, id: row.id + suffix }]),
  )

/** Rows by method and path. */
export const google: Rows = {
  ...at('/v1beta/models', ''),
  ...at('/v1/models', 'V1'),
  'GET /v1beta/models': {
    ...common,
    isPublic: true,
    id: 'listGoogleModels',
    summary: "List the models, in the form of Google's clients",
    query: {
      pageSize: { description: 'The most models of a page.', schema: { type: 'integer', minimum: 1, maximum: 1000 } },
      pageToken: { description: 'The `nextPageToken` of the page before.' },
    },
    answers: answered(
      'A page of models.',
      named('GoogleModelList', s.open({ models: s.array(googleModel), nextPageToken: s.optional(s.string()) })),
    ),
  },
  'GET /v1beta/models/{+model}': {
    ...common,
    isPublic: true,
    id: 'getGoogleModel',
    summary: "Read a model, in the form of Google's clients",
    path: { model },
    answers: answered('The model.', googleModel),
  },
}
