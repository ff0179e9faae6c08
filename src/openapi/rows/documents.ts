/** Embeddings, moderation, OCR, rerank and typed decisions. */
import { s } from '../../core/schema.ts'
import { categories } from '../../operations/moderations/request.ts'
import { answered, constant, named, orNull, PIXEL, type Row, type Rows } from '../row.ts'

const embeddings = named(
  'Embeddings',
  s.open({
    object: constant('list'),
    data: s.array(
      s.open({
        object: constant('embedding'),
        index: s.integer(),
        embedding: s.either(s.array(s.number()), s.string({ description: 'Little-endian float32 in base64.' })),
      }),
    ),
    model: s.string(),
    usage: s.open({ prompt_tokens: s.integer(), total_tokens: s.integer() }),
    id: s.optional(s.string()),
  }),
)

const moderation = named(
  'Moderation',
  s.open({
    id: s.string(),
    model: s.string(),
    results: s.array(
      s.open({
        flagged: s.boolean(),
        categories: s.open(Object.fromEntries(categories.map(name => [name, s.boolean()]))),
        category_scores: s.open(Object.fromEntries(categories.map(name => [name, s.number()]))),
        category_applied_input_types: s.optional(s.record(s.array(s.string()))),
      }),
    ),
  }),
)

const ocr = named(
  'OcrResult',
  s.open({
    pages: s.array(s.open({})),
    model: s.string(),
    document_annotation: s.optional(s.unknown()),
    usage_info: s.open({ pages_processed: s.integer(), doc_size_bytes: s.optional(orNull(s.integer())) }),
  }),
)

const rerank = named(
  'RerankResult',
  s.open({
    id: s.string(),
    results: s.array(
      s.open({
        index: s.integer(),
        relevance_score: s.number(),
        document: s.optional(s.open({ text: s.string() })),
      }),
    ),
    meta: s.optional(s.open({})),
  }),
)

const decision = named(
  'Decision',
  s.open({
    model: s.string(),
    answers: s.record(s.unknown()),
    usage: s.open({ input_tokens: s.integer(), output_tokens: s.integer() }),
  }),
)

const rerankRow: Omit<Row, 'id' | 'summary'> = {
  tag: 'Documents',
  body: 'RerankRequest',
  examples: {
    two: {
      summary: 'Two documents',
      value: { model: 'demo-rerank', query: 'cats purr', documents: ['dogs bark', 'where cats purr'], top_n: 1 },
    },
  },
  answers: answered('The documents, best first.', rerank),
}

/** Rows by method and path. */
export const documents: Rows = {
  'POST /v1/embeddings': {
    id: 'createEmbedding',
    tag: 'Embeddings',
    summary: 'Embed texts or token ids',
    body: 'EmbeddingRequest',
    examples: {
      one: { summary: 'One text', value: { model: 'demo-embed', input: 'A cat purrs.' } },
      several: {
        summary: 'Texts, as base64',
        value: { model: 'demo-embed', input: ['A cat purrs.', 'A dog barks.'], encoding_format: 'base64' },
      },
    },
    answers: answered('A vector for each input.', embeddings, {
      example: {
        object: 'list',
        data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }],
        model: 'demo-embed',
        usage: { prompt_tokens: 4, total_tokens: 4 },
      },
    }),
  },
  'POST /v1/moderations': {
    id: 'createModeration',
    tag: 'Documents',
    summary: 'Classify texts and images',
    body: 'ModerationRequest',
    examples: { text: { summary: 'A text', value: { model: 'demo-moderation', input: 'A peaceful text.' } } },
    answers: answered('A result for each input.', moderation),
  },
  'POST /v1/ocr': {
    id: 'recognizeDocument',
    tag: 'Documents',
    summary: 'Read a document',
    body: 'OcrRequest',
    examples: {
      image: {
        summary: 'An image',
        value: {
          model: 'demo-ocr',
          document: {
            type: 'image_url',
            image_url: PIXEL,
          },
        },
      },
    },
    answers: answered('The pages.', ocr),
  },
  'POST /v1/rerank': { ...rerankRow, id: 'rerankDocuments', summary: 'Order documents by a query' },
  'POST /v2/rerank': { ...rerankRow, id: 'rerankDocumentsV2', summary: "Order documents, for Cohere's clients" },
  'POST /v1/systemone': {
    id: 'createDecision',
    tag: 'Documents',
    summary: 'Answer typed questions about a state',
    body: 'DecisionRequest',
    examples: {
      kinds: {
        summary: 'A question of each type',
        value: {
          model: 'demo-decision',
          state: { message: 'My parcel has not come.' },
          questions: {
            urgent: { type: 'noul', instructions: 'Is it urgent?' },
            topic: {
              type: 'choice',
              instructions: 'What is it about?',
              criteria: { delivery: 'A parcel', billing: 'An invoice' },
            },
          },
        },
      },
    },
    answers: answered('An answer for each question.', decision),
  },
}
