/** Every wire of media × the same request: a client sees one shape and one charge, and docs/wires.md says what differs. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { formatDecimal } from '../../src/core/money.ts'
import { wavHead } from '../../src/lib/wav.ts'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { scripted } from '../helpers/scripted.ts'
import { type MediaWire, mediaWires, play, png, samples } from './media/wires.ts'

type Tree = Record<string, unknown>

interface Operation {
  readonly path: string
  readonly model: Tree
  readonly pricing: Tree
  /** The charge that every wire makes of `ask`. */
  readonly cost: string
  /** What it is made by, as docs/wires.md says it. */
  readonly charged: string
  readonly ask: Tree
  /** Of the answer: what must be the same whoever answers. */
  seen(answer: Response): Promise<unknown>
  readonly expected: unknown
  /** Further fields, each asked for by itself: they are served, or refused by name. */
  readonly probes: Readonly<Record<string, Tree>>
}

const json = async (answer: Response) => (await answer.json()) as Tree
const keysOf = (value: unknown) => Object.keys(value as Tree).sort()
const asForm = (fields: Tree): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value as string | Blob)
  return form
}
const file = new Blob([wavHead(16_000, 57_600 * 2), Buffer.alloc(57_600 * 2)])
const TEXTS = { input: ['audio'], output: ['text'] }
const transcript = {
  ask: { file, response_format: 'verbose_json' },
  pricing: { input_audio_hour: '0.36' },
  cost: '0.00036',
  charged: 'hours of audio',
  async seen(answer: Response) {
    const { text, duration, usage, segments, ...rest } = await json(answer)
    const [first, ...more] = segments as Tree[]
    return {
      text,
      duration,
      usage,
      keys: keysOf(rest),
      segment: keysOf(first),
      more,
      times: [first!.start, first!.end],
    }
  },
  probes: Object.fromEntries(
    ['json', 'text', 'srt', 'vtt', 'diarized_json'].map(format => [format, { response_format: format }]),
  ),
}
const transcriptSeen = {
  text: 'Hello there.',
  duration: 3.6,
  usage: { type: 'duration', seconds: 4, cost: 0.00036 },
  keys: ['language', 'task'],
  segment: 'avg_logprob compression_ratio end id no_speech_prob seek start temperature text tokens'.split(' '),
  more: [],
  times: [0, 2],
}

const operations: Readonly<Record<string, Operation>> = {
  images: {
    path: '/v1/images/generations',
    model: { input: ['text', 'image'], output: ['image'] },
    pricing: { per_image: { default: '0.04' } },
    cost: '0.04',
    charged: 'images',
    ask: { prompt: 'a cat' },
    async seen(answer) {
      const { created, data, usage, ...rest } = await json(answer)
      const { cost } = usage as Tree
      return { created: typeof created, data, cost, usage: keysOf(usage), rest }
    },
    expected: {
      created: 'number',
      data: [{ b64_json: png.toString('base64') }],
      cost: 0.04,
      usage:
        'cost cost_details input_tokens input_tokens_details output_tokens output_tokens_details total_tokens'.split(
          ' ',
        ),
      rest: {},
    },
    probes: {
      'n: 3': { n: 3 },
      stream: { stream: true },
      aspect_ratio: { aspect_ratio: '16:9' },
      'output_format: jpeg': { output_format: 'jpeg' },
      'output_format: webp': { output_format: 'webp' },
      'background: transparent': { background: 'transparent' },
    },
  },
  speech: {
    path: '/v1/audio/speech',
    model: { input: ['text'], output: ['audio'] },
    pricing: { prompt: '15' },
    cost: '0.000075',
    charged: 'characters',
    ask: { input: 'Hello', response_format: 'wav' },
    async seen(answer) {
      const bytes = Buffer.from(await answer.arrayBuffer())
      const [head, sound] = [bytes.toString('latin1', 0, 4), bytes.subarray(44)]
      return { type: answer.headers.get('content-type'), head, same: sound.equals(samples) }
    },
    expected: { type: 'audio/wav', head: 'RIFF', same: true },
    probes: {
      ...Object.fromEntries(['mp3', 'opus', 'aac', 'flac', 'pcm'].map(format => [format, { response_format: format }])),
      sse: { stream_format: 'sse' },
    },
  },
  transcriptions: {
    ...transcript,
    path: '/v1/audio/transcriptions',
    model: { ...TEXTS, operations: ['transcriptions'] },
    expected: transcriptSeen,
    probes: { ...transcript.probes, stream: { response_format: 'json', stream: true } },
  },
  translations: {
    ...transcript,
    path: '/v1/audio/translations',
    model: { ...TEXTS, operations: ['translations'] },
    expected: transcriptSeen,
    probes: {
      json: transcript.probes.json!,
      text: transcript.probes.text!,
      srt: transcript.probes.srt!,
      vtt: transcript.probes.vtt!,
    },
  },
  moderations: {
    path: '/v1/moderations',
    model: { input: ['text', 'image'], output: ['moderation'] },
    pricing: { request: '0.002' },
    cost: '0.002',
    charged: 'requests',
    ask: { input: 'words' },
    async seen(answer) {
      const { results, ...rest } = await json(answer)
      const [{ flagged, categories, category_scores, ...more }] = results as [Tree]
      const { sexual } = category_scores as Tree
      return { keys: keysOf(rest), flagged, sexual, count: keysOf(categories).length, more: keysOf(more) }
    },
    expected: { keys: ['id', 'model'], flagged: true, sexual: 0.5, count: 13, more: ['category_applied_input_types'] },
    probes: { images: { input: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }] } },
  },
  rerank: {
    path: '/v1/rerank',
    model: { input: ['text'], output: ['rerank'] },
    pricing: { request: '0.002' },
    cost: '0.002',
    charged: 'search units',
    ask: { query: 'cats', documents: ['a', 'b'], return_documents: true },
    async seen(answer) {
      const { results, object, model, usage } = await json(answer)
      return { results, object, model, cost: (usage as Tree).cost }
    },
    expected: {
      results: [
        { index: 1, relevance_score: 0.75, document: { text: 'b' } },
        { index: 0, relevance_score: 0.5, document: { text: 'a' } },
      ],
      object: 'list',
      model: 'rerank',
      cost: 0.002,
    },
    probes: { top_n: { top_n: 1 } },
  },
  ocr: {
    path: '/v1/ocr',
    model: { input: ['text', 'image', 'file'], output: ['text'], operations: ['ocr'] },
    pricing: { ocr_page: '0.004', ocr_page_annotated: '0.005' },
    cost: '0.004',
    charged: 'pages',
    ask: { document: { type: 'document_url', document_url: 'https://a.example/a.pdf' } },
    async seen(answer) {
      const { pages, ...rest } = await json(answer)
      return { pages: (pages as Tree[]).map(({ index, markdown }) => ({ index, markdown })), rest }
    },
    expected: {
      pages: [{ index: 0, markdown: '# A' }],
      rest: { model: 'ocr', usage_info: { pages_processed: 1, doc_size_bytes: 9 }, document_annotation: null },
    },
    probes: {
      'an image': { document: { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } } },
      pages: { pages: '0-4' },
      annotations: { document_annotation_format: { type: 'json_schema', json_schema: { name: 'a', schema: {} } } },
    },
  },
}

const idOf = ({ wire, kind }: MediaWire) => `${wire}${kind ? `-${kind.toLowerCase()}` : ''}`.replaceAll('.', '-')
const provider = await scripted(t)
const { origin } = new URL(provider.url)
const byId = new Map(mediaWires.map(row => [idOf(row), row]))
provider.answers((res, got) => play(res, got, origin, byId))
const timeouts = { connect: '1s', first_event: '10s', idle: '10s', total: '20s' }
const gateway = await startGateway(t, {
  models: Object.entries(operations).flatMap(([op, { model }]) => {
    const entry = { id: op, name: op, family: 'test', ...model }
    // A model whose price is by the character is another one than that which is priced by tokens.
    return [op === 'speech' ? { ...entry, tokenizer: 'characters' } : entry, { ...entry, id: `${op}-tokens` }]
  }),
  providers: Object.fromEntries(
    mediaWires.map(row => {
      const { op, wire, id = 'acme-1', mapping, tokens } = row
      const offers = [{ model: op, id, pricing: operations[op]!.pricing, ...mapping }]
      if (tokens) offers.push({ model: `${op}-tokens`, id, pricing: tokens.pricing, ...mapping })
      return [idOf(row), { base_url: `${origin}/${idOf(row)}`, wires: { [op]: wire }, timeouts, models: offers }]
    }),
  ),
})

const books = openBooks(t, gateway)
/** USD. */
const lastCost = () => {
  const { cost } = books.prepare('SELECT cost FROM requests ORDER BY id DESC LIMIT 1').get() as { cost: number }
  return formatDecimal(BigInt(cost), 9)
}

async function ask(row: MediaWire, more: Tree = {}, model = row.op): Promise<Response> {
  const { path, ask } = operations[row.op]!
  const fields: Tree = { ...ask, ...more, model: `${idOf(row)}/${model}` }
  if (!fields.file) return gateway.post(path, fields)
  const headers = { authorization: `Bearer ${gateway.key}` }
  return fetch(`${gateway.url}${path}`, { method: 'POST', headers, body: asForm(fields) })
}

for (const [op, { expected, cost, seen }] of Object.entries(operations)) {
  t.test(`${op}: the same request has the same shape and the same charge on every wire`, async t => {
    for (const row of mediaWires.filter(wire => wire.op === op)) {
      const answer = await ask(row)
      if (answer.status !== 200) t.fail(`${idOf(row)}: ${await answer.text()}`)
      else t.strictSame([answer.headers.get('x-gateway-cost'), await seen(answer)], [cost, expected], idOf(row))
      if (!row.tokens) continue
      const counted = await ask(row, {}, `${op}-tokens`)
      t.equal(counted.status, 200, await counted.text())
      t.equal(lastCost(), row.tokens.cost, `${idOf(row)} by tokens`)
    }
  })
}

t.test('docs/wires.md says what each wire carries and refuses, and what it is charged by', async t => {
  const lines = ['| Operation | Wire | Carries | Refuses | Charged by |', '| --- | --- | --- | --- | --- |']
  for (const row of mediaWires) {
    const { probes, charged } = operations[row.op]!
    const outcomes = await Promise.all(
      Object.entries(probes).map(async ([name, fields]) => {
        const answer = await ask(row, fields)
        const body = await answer.text()
        const { error } = answer.status === 200 ? {} : (JSON.parse(body) as { error: Tree })
        if (error)
          t.match({ status: answer.status, ...error }, { status: 400, code: 'model_not_supported', param: String })
        return { name, served: !error }
      }),
    )
    const names = (served: boolean) =>
      outcomes
        .filter(outcome => outcome.served === served)
        .map(({ name }) => name)
        .join(', ')
    const kind = row.kind ? ` (${row.kind})` : ''
    const by = row.tokens ? `${charged}, or tokens` : charged
    lines.push(`| ${row.op} | \`${row.wire}\`${kind} | ${names(true) || '–'} | ${names(false) || '–'} | ${by} |`)
  }
  const page = readFileSync(new URL('../../docs/wires.md', import.meta.url), 'utf8')
  const at = page.indexOf('| Operation | Wire | ')
  t.equal(page.slice(at, page.indexOf('\n\n', at)), lines.join('\n'), 'docs/wires.md holds this table')
})

t.test('the books are sound', async t => {
  t.strictSame(await commandsOf(gateway)('usage.check'), { differences: [] })
  t.strictSame(books.prepare('SELECT * FROM holds').all(), [])
})
