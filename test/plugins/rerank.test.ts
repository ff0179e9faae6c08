/** The rerank wires: what each sends and reads, and answers that fail (docs/contributing/edge-cases.md#media M14). */
import t from 'tap'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as jina } from '../../plugins/jina.ts'
import { plugin as voyage } from '../../plugins/voyage.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import type { RerankRequest } from '../../src/operations/rerank/request.ts'
import { deepFreeze, target } from './wire-kit.ts'

const wires = new Map<string, Translator<'rerank'>>()
for (const { wires: all } of [cohere, jina, voyage, bedrock]) {
  for (const wire of all) if (wire.op === 'rerank') wires.set(wire.wire, wire)
}
const request = (more: Partial<RerankRequest> = {}): RerankRequest =>
  deepFreeze({
    model: 'acme-rank',
    query: 'cats',
    documents: ['a dog', 'a cat', 'cats'],
    top_n: undefined,
    return_documents: false,
    max_chunks_per_doc: undefined,
    max_tokens_per_doc: undefined,
    ...more,
  })
const offer = (more: Parameters<typeof target>[0] = {}): Target =>
  target({ mapping: { externalId: 'rank-1' }, ...more })

t.test('each wire asks in its own words', async t => {
  const all = { query: 'cats', documents: ['a dog', 'a cat', 'cats'] }
  const two = request({ top_n: 2, max_tokens_per_doc: 9 })
  const rows: [wire: string, input: RerankRequest, body: object][] = [
    ['cohere.rerank', request(), { model: 'rank-1', ...all }],
    ['cohere.rerank', two, { model: 'rank-1', ...all, top_n: 2, max_tokens_per_doc: 9 }],
    ['cohere.rerank', request({ top_n: 9 }), { model: 'rank-1', ...all, top_n: 3 }],
    ['jina.rerank', two, { model: 'rank-1', ...all, top_n: 2, return_documents: false }],
    ['jina.rerank', request(), { model: 'rank-1', ...all, top_n: 3, return_documents: false }],
    ['voyage.rerank', two, { model: 'rank-1', ...all, top_k: 2, return_documents: false, truncation: true }],
    ['voyage.rerank', request(), { model: 'rank-1', ...all, return_documents: false, truncation: true }],
  ]
  for (const [wire, input, body] of rows) {
    t.strictSame(wires.get(wire)!.encode(input, offer(), false), { path: '/rerank', body }, wire)
  }
})

t.test('Bedrock names the model by its ARN, of the region that is spoken to', async t => {
  const arn = (to: Target) => {
    const { body } = wires.get('bedrock.rerank')!.encode(request({ top_n: 1 }), to, false)
    t.match(body, {
      queries: [{ type: 'TEXT', textQuery: { text: 'cats' } }],
      rerankingConfiguration: { bedrockRerankingConfiguration: { numberOfResults: 1 } },
    })
    const { sources } = body as { sources: unknown[] }
    t.strictSame(sources[0], {
      type: 'INLINE',
      inlineDocumentSource: { type: 'TEXT', textDocument: { text: 'a dog' } },
    })
    return (body as { rerankingConfiguration: { bedrockRerankingConfiguration: { modelConfiguration: object } } })
      .rerankingConfiguration.bedrockRerankingConfiguration.modelConfiguration
  }
  const sigv4 = { scheme: 'aws-sigv4', region: 'ap-south-1', service: 'bedrock' } as const
  const host = 'https://bedrock-agent-runtime.eu-central-1.amazonaws.com'
  const of = (region: string) => ({ modelArn: `arn:aws:bedrock:${region}::foundation-model/rank-1` })
  t.strictSame(arn(offer({ provider: { baseUrl: host } })), of('eu-central-1'))
  t.strictSame(arn(offer({ provider: { auth: sigv4 } })), of('ap-south-1'))
  t.strictSame(arn({ ...offer(), region: 'us-west-2' }), of('us-west-2'))
  const own = 'arn:aws:bedrock:us-east-1:1:x/y'
  t.strictSame(arn(offer({ mapping: { externalId: own } })), { modelArn: own })
})

/** The events of an answer to three documents. */
function decode(wire: string, answer: unknown, input = request()) {
  const decoder = wires.get(wire)!.decoder('unary', offer(), input)
  return [...decoder.frame({ data: JSON.stringify(answer) }), ...decoder.end()]
}
const list = [
  { index: 2, relevance_score: 0.5 },
  { index: 0, relevance_score: -3.5 },
]

t.test('each wire reads its list and what was counted', async t => {
  const many = request({ documents: Array.from({ length: 201 }, () => 'x') })
  const long = request({ documents: Array.from({ length: 100 }, () => 'x'.repeat(16_384)) })
  const rows: [wire: string, answer: unknown, usage: object, input?: RerankRequest][] = [
    ['bedrock.rerank', { results: [] }, { request: 9 }, long],
    ['cohere.rerank', { results: list }, { request: 9 }, long],
    ['cohere.rerank', { results: list, meta: { billed_units: { search_units: 2 } } }, { request: 2 }],
    ['cohere.rerank', { results: list, meta: { billed_units: { input_tokens: 7 } } }, { request: 1, prompt: 7 }],
    ['cohere.rerank', { results: list }, { request: 3 }, many],
    ['jina.rerank', { results: list, usage: { total_tokens: 9 } }, { prompt: 9 }],
    ['jina.rerank', { data: list }, {}],
    ['jina.rerank', list, {}],
    ['voyage.rerank', { object: 'list', data: list, usage: { total_tokens: 9 } }, { prompt: 9 }],
    [
      'bedrock.rerank',
      { results: list.map(({ index, relevance_score }) => ({ index, relevanceScore: relevance_score })) },
      { request: 1 },
    ],
    ['bedrock.rerank', { results: [] }, { request: 3 }, many],
  ]
  for (const [wire, answer, usage, input] of rows) {
    const results = JSON.stringify(answer).includes('index') ? list : []
    t.strictSame(
      decode(wire, answer, input),
      [
        { type: 'usage', usage },
        { type: 'result', value: { results } },
      ],
      `${wire} ${JSON.stringify(answer)}`,
    )
  }
})

t.test('M14 an answer that ranks nothing, or wrongly, is the failure of its provider', async t => {
  const results = (...entries: object[]) => ({ results: entries })
  const rows: [says: string, answer: unknown, status: number][] = [
    ['no list', {}, 502],
    ['no JSON object', 'x', 502],
    ['an index beyond', results({ index: 3, relevance_score: 1 }), 502],
    ['an index below', results({ index: -1, relevance_score: 1 }), 502],
    ['half an index', results({ index: 0.5, relevance_score: 1 }), 502],
    ['an index in words', results({ index: '0', relevance_score: 1 }), 502],
    ['the same index twice', results({ index: 0, relevance_score: 1 }, { index: 0, relevance_score: 1 }), 502],
    ['no score', results({ index: 0 }), 502],
    ['a score in words', results({ index: 0, relevance_score: 'NaN' }), 502],
    ['an error in place of it', { error: { message: 'overloaded', code: 503 } }, 503],
    ['an error in words', { message: 'too many requests' }, 503],
  ]
  for (const [says, answer, status] of rows) {
    const [event, ...more] = decode('cohere.rerank', answer)
    t.match(event, { type: 'error', error: { status, failover: true } }, says)
    t.strictSame(more, [], says)
  }
})
