/** The list of models as Messages clients read it: what an entry says, and which page comes. */
import t from 'tap'
import { modelPage } from '../../src/codecs/messages/model-list.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { thrown } from '../core/kit.ts'
import type { Json } from './bodies.ts'

const TODAY = '2026-01-31'
const created = Date.UTC(2026, 0, 2) / 1000
const entry = (id: string, more: Json = {}): Json => ({ id, display_name: `Model ${id}`, created, ...more })
const listing = (...data: Json[]) => Buffer.from(JSON.stringify({ object: 'list', data }))
const page = (of: Buffer, query = '') =>
  modelPage(of, new URLSearchParams(query), TODAY) as { data: Json[] } & Record<string, unknown>

t.test('an entry has the fields of the wire, with null for what is not known', async t => {
  const plain = {
    type: 'model',
    id: 'a',
    display_name: 'Model a',
    created_at: '2026-01-02T00:00:00Z',
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    max_input_tokens: null,
    max_tokens: null,
    line: null,
    capabilities: null,
  }
  const rows: [given: Json, shown: Json][] = [
    [{}, {}],
    [{ created: 0 }, { created_at: '1970-01-01T00:00:00Z' }],
    [
      { context_length: 9, max_output: 5 },
      { max_input_tokens: 9, max_tokens: 5 },
    ],
    [{ deprecated_at: '2026-02-01', deactivated_at: '2026-03-01' }, {}],
    [
      { deprecated_at: TODAY, deactivated_at: '2026-03-01' },
      { lifecycle: 'deprecated', deprecated_at: '2026-01-31T00:00:00Z', retires_at: '2026-03-01T00:00:00Z' },
    ],
    [{ deactivated_at: TODAY }, { lifecycle: 'retired', retires_at: '2026-01-31T00:00:00Z' }],
  ]
  for (const [given, shown] of rows) t.strictSame(page(listing(entry('a', given))).data, [{ ...plain, ...shown }])
})

t.test('pages go forward and backward through all models, the newest first', async t => {
  const all = listing(
    ...['a', 'b', 'c', 'd', 'e'].map((id, i) => entry(id, { created: i })),
    entry('old', { created: -1, deprecated_at: '2026-01-01' }),
    entry('gone', { created: -2, deactivated_at: '2026-01-01' }),
  )
  const rows: [query: string, ids: string, has_more: boolean][] = [
    ['', 'e d c b a old gone', false],
    ['limit=2', 'e d', true],
    ['limit=2&after_id=d', 'c b', true],
    ['limit=3&after_id=a', 'old gone', false],
    ['after_id=gone', '', false],
    ['limit=2&before_id=b', 'd c', true],
    ['limit=5&before_id=c', 'e d', false],
    ['before_id=e', '', false],
    ['lifecycle=deprecated,retired', 'old gone', false],
    ['lifecycle[]=active&lifecycle[]=deprecated&limit=1&after_id=a', 'old', false],
    ['lifecycle=unknown', '', false],
  ]
  for (const [query, ids, has_more] of rows) {
    const { data, ...rest } = page(all, query)
    const shown = data.map(({ id }) => id)
    t.equal(shown.join(' '), ids, query)
    t.strictSame(rest, { has_more, first_id: shown[0] ?? null, last_id: shown.at(-1) ?? null }, query)
  }
  t.equal(page(listing(...Array.from({ length: 30 }, (_, i) => entry(`m${i}`)))).data.length, 20)
})

t.test('a page that cannot be is refused by name', async t => {
  const rows: [query: string, param: string][] = [
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=x', 'limit'],
    ['limit=1.5', 'limit'],
    ['after_id=nobody', 'after_id'],
    ['before_id=', 'before_id'],
    ['after_id=a&before_id=a', 'before_id'],
  ]
  for (const [query, param] of rows) {
    const error = thrown(() => page(listing(entry('a')), query))
    t.ok(error instanceof GatewayError, query)
    t.match(error, { status: 400, param, message: /\S{3}/ }, query)
  }
})
