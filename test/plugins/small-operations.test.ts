/** The wires of moderations, OCR and typed decisions: what they send, what they read, and which answers are none. */
import t from 'tap'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as typesafe } from '../../plugins/typesafe.ts'
import type { Event } from '../../src/core/event.ts'
import type { Translator } from '../../src/core/translator.ts'
import { thrown } from '../core/kit.ts'
import { deepFreeze, target } from './wire-kit.ts'

const wires = new Map<string, Translator>()
for (const { wires: all } of [openai, mistral, typesafe]) {
  for (const wire of all as readonly unknown[] as readonly Translator[]) wires.set(wire.wire, wire)
}
const to = target({ mapping: { externalId: 'm-1' } })
const sent = (wire: string, request: object) => {
  const { path, body } = wires.get(wire)!.encode(deepFreeze({ model: 'm', ...request }) as never, to, false)
  return [path, body]
}
const read = (wire: string, request: object, answer: unknown): Event[] => {
  const decoder = wires.get(wire)!.decoder('unary', to, { model: 'm', ...request } as never)
  return [...decoder.frame({ data: JSON.stringify(answer) }), ...decoder.end()]
}
/** The value of the result and the usage; the error of an answer that is none. */
function outcome(events: Event[]): [unknown, unknown] {
  const [error] = events.flatMap(event => (event.type === 'error' ? [event.error] : []))
  if (error) return [error.status, error.failover]
  const value = events.flatMap(event => (event.type === 'result' ? [event.value] : []))[0]
  const usage = events.flatMap(event => (event.type === 'usage' ? [event.usage] : []))[0]
  return [value, usage]
}

const parts = [
  { type: 'text', text: 'a' },
  { type: 'text', text: 'b' },
]

t.test('each wire asks in its own words', async t => {
  const document = { type: 'document_url', document_url: 'https://a.example/b.pdf' }
  const questions = { q: { type: 'noul', instructions: 'x' } }
  const rows: [wire: string, request: object, path: string, body: object][] = [
    ['openai.moderations', { input: 'a' }, '/moderations', { input: 'a' }],
    ['openai.moderations', { input: parts }, '/moderations', { input: parts }],
    ['mistral.moderations', { input: 'a' }, '/moderations', { input: ['a'] }],
    ['mistral.moderations', { input: ['a', 'b'] }, '/moderations', { input: ['a', 'b'] }],
    ['mistral.moderations', { input: parts }, '/moderations', { input: ['a\nb'] }],
    ['mistral.ocr', { document, pages: '0-4' }, '/ocr', { document, pages: '0-4' }],
    ['typesafe.decisions', { state: { a: 1 }, questions }, '/systemone', { state: { a: 1 }, questions }],
  ]
  for (const [wire, request, path, body] of rows) {
    t.strictSame(sent(wire, request), [path, { ...body, model: 'm-1' }], `${wire} ${JSON.stringify(request)}`)
  }
  const image = [{ type: 'image_url', image_url: { url: 'https://a.example/a.png' } }]
  t.match(
    thrown(() => sent('mistral.moderations', { input: image })),
    { status: 400, param: 'input' },
  )
})

t.test('a moderation has a result for each text, and one for all parts', async t => {
  const result = { flagged: true, categories: { hate: true }, category_scores: { hate: 1.5, bad: 'x' } }
  const told = {
    flagged: true,
    categories: { hate: true },
    category_scores: { hate: 1.5 },
    category_applied_input_types: {},
  }
  t.strictSame(outcome(read('openai.moderations', { input: 'a' }, { results: [result] })), [
    { results: [told] },
    { request: 1 },
  ])
  const two = { results: [result, { categories: { hate: true } }], usage: { prompt_tokens: 9 } }
  t.strictSame(outcome(read('openai.moderations', { input: ['a', 'b'] }, two)), [
    { results: [told, { ...told, category_scores: {} }] },
    { request: 1, prompt: 9 },
  ])
  for (const [says, answer, status] of [
    ['none', {}, 502],
    ['too few', { results: [] }, 502],
    ['too many', two, 502],
    ['no object', { results: [1] }, 502],
    ['a result of nothing', { results: [{}] }, 502],
    ['a result without categories', { results: [{ flagged: false, categories: null }] }, 502],
    ['an error', { error: { message: 'slow down', code: 429 } }, 503],
  ] as const) {
    t.strictSame(outcome(read('openai.moderations', { input: parts }, answer)), [status, true], says)
  }
})

t.test("Mistral's categories get OpenAI's names, and keep their own", async t => {
  const flagged = (categories: object, category_scores: object = {}) =>
    outcome(read('mistral.moderations', { input: 'a' }, { results: [{ categories, category_scores }] }))[0]
  t.match(flagged({ selfharm: false, dangerous: true, criminal: false }, { dangerous: 0.25, criminal: 0.5 }), {
    results: [
      {
        flagged: true,
        categories: { 'self-harm': false, illicit: true, dangerous: true, criminal: false },
        category_scores: { illicit: 0.5, dangerous: 0.25 },
        category_applied_input_types: {},
      },
    ],
  })
  for (const [name, is] of [
    ['sexual', true],
    ['hate_and_discrimination', true],
    ['violence_and_threats', true],
    ['dangerous_and_criminal_content', true],
    ['selfharm', true],
    ['jailbreaking', true],
    ['health', false],
    ['financial', false],
    ['law', false],
    ['pii', false],
  ] as const) {
    t.match(flagged({ [name]: true }), { results: [{ flagged: is }] }, name)
  }
})

t.test('pages are counted as processed, else as they came, and annotated ones apart', async t => {
  const document = { type: 'image_url', image_url: 'https://a.example/a.png' }
  const page = { index: 0, markdown: '# A' }
  const answer = { pages: [page, page], model: 'x', extra: 1, usage_info: { pages_processed: 5, doc_size_bytes: 9 } }
  t.strictSame(outcome(read('mistral.ocr', { document }, answer)), [
    { ...answer, document_annotation: null },
    { ocr_page: 5 },
  ])
  const bare = { pages: [page, page], usage_info: { pages_processed: 0 } }
  const format = { bbox_annotation_format: { type: 'json_schema' } }
  t.strictSame(outcome(read('mistral.ocr', { document, ...format }, bare)), [
    { pages: [page, page], document_annotation: null, usage_info: { pages_processed: 2, doc_size_bytes: null } },
    { ocr_page_annotated: 2 },
  ])
  for (const processed of [2.5, '7', -1, null]) {
    const odd = { pages: [page], usage_info: { pages_processed: processed } }
    t.strictSame(outcome(read('mistral.ocr', { document }, odd))[1], { ocr_page: 1 }, `${processed} processed`)
  }
  for (const pages of [null, 'x', [page, 1], [null]]) {
    t.strictSame(outcome(read('mistral.ocr', { document }, { pages })), [502, true], JSON.stringify(pages))
  }
  const refused = wires
    .get('mistral.ocr')!
    .error(422, JSON.stringify({ detail: [{ loc: ['body', 'pages'], msg: 'bad' }] }), to)
  t.match(refused, { status: 400, message: /bad/ })
})

const questions = {
  likely: { type: 'noul', instructions: 'Is it?' },
  which: { type: 'choice', instructions: 'Which?', criteria: { a: null, b: 'B' } },
  how: { type: 'score', instructions: 'How?', criteria: ['low', 'high'] },
}
const answers = {
  how: { type: 'score', score: 0.7, probabilities: { 0: 0.3, 1: 0.7 } },
  which: { type: 'choice', choice: 'b', probabilities: { a: 0.1, b: 0.9 } },
  likely: { type: 'noul', noul: 0.4 },
}

t.test('decisions come in the order of their questions, with what their provider leaves out', async t => {
  const events = read('typesafe.decisions', { questions }, { answers, usage: { input_tokens: 7, output_tokens: 3 } })
  const [value, usage] = outcome(events)
  t.equal(
    JSON.stringify(value),
    JSON.stringify({
      answers: {
        likely: { type: 'noul', noul: 0.4 },
        which: { type: 'choice', choice: 'b', probabilities: { a: 0.1, b: 0.9 }, confidence: 0.9 },
        how: {
          type: 'score',
          score: 0.7,
          legend: { 0: 'low', 1: 'high' },
          probabilities: { 0: 0.3, 1: 0.7 },
          confidence: 0.7,
        },
      },
      outputTokens: 3,
    }),
  )
  t.strictSame(usage, { prompt: 7 })
})

t.test('what an object inherits is no probability of an option that has its name', t => {
  const own = { q: { type: 'choice', instructions: '?', criteria: { toString: null, b: null } } }
  const told = (more: object) =>
    outcome(
      read(
        'typesafe.decisions',
        { questions: own },
        { answers: { q: { type: 'choice', choice: 'toString', ...more } } },
      ),
    )
  t.strictSame(told({}), [502, true])
  t.match(told({ probabilities: { toString: 0.6 } }), [{ answers: { q: { confidence: 0.6 } } }])
  t.match(told({ confidence: 0.7 }), [{ answers: { q: { confidence: 0.7, probabilities: {} } } }])
  t.end()
})

t.test('M16 an answer of another type, option or share is the failure of its provider', async t => {
  const changed: [key: keyof typeof answers, change: object][] = [
    ['likely', { type: 'choice' }],
    ['likely', { noul: 1.1 }],
    ['likely', { noul: '0.4' }],
    ['which', { choice: 'c' }],
    ['which', { choice: 'toString' }],
    ['which', { probabilities: { c: 1 } }],
    ['which', { probabilities: { a: -0.1 } }],
    ['which', { confidence: 2 }],
    ['which', { probabilities: { a: 0.1 } }],
    ['how', { score: 2 }],
    ['how', { score: null }],
    ['how', { probabilities: { 2: 1 } }],
  ]
  for (const [key, change] of changed) {
    const answer = { answers: { ...answers, [key]: { ...answers[key], ...change } } }
    t.strictSame(outcome(read('typesafe.decisions', { questions }, answer)), [502, true], JSON.stringify(change))
  }
  const { how: _, ...missing } = answers
  t.strictSame(outcome(read('typesafe.decisions', { questions }, { answers: missing })), [502, true], 'one is missing')
  t.strictSame(outcome(read('typesafe.decisions', { questions }, {})), [502, true], 'all are')
})
