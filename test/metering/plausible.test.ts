/** Reports of usage that no request can have caused: what was held is charged in their place. */
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { Event } from '../../src/core/event.ts'
import { formatMoney } from '../../src/core/money.ts'
import type { Usage } from '../../src/core/usage.ts'
import { transcriptions } from '../../src/endpoints/inference.ts'
import { type Expected, plausible } from '../../src/metering/plausible.ts'
import { exchange, text } from '../core/kit.ts'
import { base, flat } from '../core/prices.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { target } from '../plugins/wire-kit.ts'

const short = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(40) }] }
const searching = { ...short, web_search: true }
const long = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(800_000) }] }
/** The short prompt has 10 tokens, and the answer 1. */
const rows: readonly [says: string, request: object, mapping: object, reported: Usage, kept: Usage][] = [
  ['a usual report', short, {}, { prompt: 9, completion: 5000 }, { prompt: 9, completion: 5000 }],
  ['a long prompt', long, {}, { prompt: 800_000, completion: 1 }, { prompt: 800_000, completion: 1 }],
  ['an endless prompt', short, {}, { prompt: 40_000, completion: 1 }, { prompt: 10, completion: 1 }],
  [
    'a prompt that the model can read',
    short,
    { contextLength: 50_000 },
    { prompt: 40_000, completion: 1 },
    { prompt: 40_000, completion: 1 },
  ],
  ['an endless answer', short, {}, { prompt: 9, completion: 1e9 }, { prompt: 9, completion: 1_000_000 }],
  [
    'an endless answer within a limit',
    { ...short, max_tokens: 50, n: 2 },
    { maxOutput: 64_000 },
    { prompt: 9, completion: 1e9 },
    { prompt: 9, completion: 100 },
  ],
  [
    'more than the model writes',
    short,
    { maxOutput: 64_000 },
    { prompt: 9, completion: 64_001 },
    { prompt: 9, completion: 64_000 },
  ],
  [
    'each of two choices as long as it can be',
    { ...short, n: 2 },
    { maxOutput: 64_000 },
    { prompt: 9, completion: 128_000 },
    { prompt: 9, completion: 128_000 },
  ],
  [
    'parts of what there is',
    short,
    {},
    { prompt: 9, completion: 1, input_cache_read: 1e6, image_output: 1e7, request: 33, web_search: 33 },
    { prompt: 9, completion: 1 },
  ],
  [
    'more searches than a request for some can cause',
    searching,
    {},
    { prompt: 9, completion: 1, web_search: 40 },
    { prompt: 9, completion: 1, web_search: 32 },
  ],
  ['a search', searching, {}, { prompt: 500_000, completion: 1 }, { prompt: 500_000, completion: 1 }],
]

for (const [says, request, mapping, reported, kept] of rows) {
  t.test(`${says}: what is not plausible counts as what was held for it`, async t => {
    const ex = exchange({ request, target: target({ mapping }) })
    ex.observe([text('abc'), { type: 'usage', usage: reported }])
    ex.meter.complete(false)
    t.strictSame(ex.usage, kept)
    t.equal(ex.estimated, !isDeepStrictEqual(reported, kept))
  })
}

t.test('an answer whose limit the wire does not carry may go on to the end of the context', async t => {
  for (const [limit, kept] of [
    [undefined, 64_000],
    [Number.POSITIVE_INFINITY, 128_000],
  ] as const) {
    const ex = exchange({ request: short, target: target({ mapping: { maxOutput: 64_000, contextLength: 1e6 } }) })
    if (limit) ex.outbound.output = { limit }
    ex.observe([text('x'.repeat(40)), { type: 'usage', usage: { prompt: 9, completion: 128_000 } }])
    ex.meter.complete(false)
    t.equal(ex.usage.completion, kept)
  }
})

const found = { ...short, tools: [{ type: 'tool_search', tool_search_type: 'tool_search_tool_regex' }] }
const drawn = [{ type: 'image_url', image_url: { url: 'https://a.example/a.png' } }]
const pictured = { model: 'm', messages: [{ role: 'user', content: drawn }] }
const said = (usage: Usage): Event => ({ type: 'usage', usage })
const rounds = { prompt: 2_800_000, completion: 9 }
const endless = { prompt: 40_000_000, completion: 9 }
/** A page is held for with 24,000 tokens, an image with 1,600; the model reads a million. */
const looping: readonly [says: string, request: object, native: object, events: Event[], kept: Usage][] = [
  ['no tool of the provider', short, {}, [said(rounds)], { prompt: 10, completion: 9 }],
  ['a search of tools', found, {}, [said(rounds)], rounds],
  ['pages that are read', short, { pages: 1 }, [said(rounds)], rounds],
  ['another tool of the provider', short, { loops: true }, [said(rounds)], rounds],
  ['more than all rounds', short, { pages: 1, loops: true }, [said(endless)], { prompt: 24_010, completion: 9 }],
  ['more with an image', pictured, {}, [said(endless)], { prompt: 1600, completion: 9 }],
  [
    'more than a report before it',
    short,
    { pages: 2 },
    [said({ prompt: 9, completion: 1 }), said(endless)],
    { prompt: 48_010, completion: 9 },
  ],
  [
    'more beside what a tool has read',
    short,
    { pages: 1 },
    [{ type: 'usage', usage: {}, read: 400_000 }, said(endless)],
    { prompt: 100_010, completion: 9 },
  ],
  [
    'an answer that is longer than a report before it',
    short,
    {},
    [said({ prompt: 9, completion: 1 }), text('x'.repeat(396)), said({ prompt: 9, completion: 1e9 })],
    { prompt: 9, completion: 1_000_000 },
  ],
  [
    'a report after it that corrects it downwards',
    short,
    { pages: 1 },
    [said({ prompt: 900, completion: 50, input_cache_read: 7 }), said(endless), said({ prompt: 12, completion: 2 })],
    { prompt: 12, completion: 2, input_cache_read: 7 },
  ],
  [
    'an answer that begins again',
    short,
    { pages: 1 },
    [{ type: 'start' }, said(endless), { type: 'start' }, said({ prompt: 9, completion: 1 }), text('abc')],
    { prompt: 9, completion: 1 },
  ],
]

for (const [says, request, native, events, kept] of looping) {
  t.test(`${says}: all that may be read again is plausible, and no less than was held is charged`, async t => {
    const ex = exchange({ request, target: target({ mapping: { contextLength: 1_000_000 } }) })
    ex.input.native = { wire: 'w', body: {}, ...native }
    if (events[0]?.type !== 'start') ex.observe([text('abc')])
    ex.observe(events)
    ex.meter.complete(false)
    t.strictSame(ex.usage, kept)
  })
}

t.test('searches cost what the request may have caused, however many are reported', async t => {
  const price = flat({ ...base, web_search: '0.01' })
  const ex = exchange({ request: searching, target: target({ mapping: { price } }) })
  ex.observe([text('abc'), { type: 'usage', usage: { prompt: 0, completion: 0, web_search: 40 } }])
  ex.meter.complete(false)
  t.equal(formatMoney(ex.meter.cost!.total), '0.32')
})

t.test('what is billed has the bounds of what is used', async t => {
  for (const [billed, cost] of [
    [{ prompt: 100, completion: 50 }, '0.00075'],
    [{ prompt: 1e9, completion: 50 }, '0.003'],
  ] as const) {
    const ex = exchange({ request: short, target: target({ mapping: { price: flat(base) } }) })
    ex.observe([text('abc'), { type: 'usage', usage: { prompt: 1000, completion: 500 }, billed }])
    t.equal(formatMoney(ex.meter.cost!.total), cost)
  }
})

t.test('units are compared with what the request may cause, and small reports with nothing', async t => {
  const expected = (usage: Usage): Expected => ({ usage, longest: 0, written: 0 })
  const all = { request: 64, input_audio_hour: 3 }
  t.strictSame(
    plausible(all, () => expected({ request: 2, input_audio_hour: 0.1 })),
    all,
  )
  t.strictSame(
    plausible(all, () => expected({ request: 1, input_audio_hour: 0 })),
    { request: 32, input_audio_hour: 1 },
    'the bound is charged of more',
  )
  t.strictSame(
    plausible(all, () => expected({})),
    {},
    'and nothing of what the request cannot cause',
  )
  const small = { prompt: 32_768, completion: 32_768, request: 32, ocr_page: 1000 }
  const none = (): Expected => {
    throw new Error('an estimate is made')
  }
  t.equal(plausible(small, none), small)
})

t.test('a flood of large reports takes as long for a long prompt as for a short one', t => {
  const reports: Event[] = Array.from({ length: 1500 }, () => ({ type: 'usage', usage: { prompt: 99_999 } }))
  const timed = (parts: number) => {
    const content = Array.from({ length: parts }, () => ({ type: 'text', text: 'a' }))
    const tools = Array.from({ length: parts }, () => ({ type: 'custom', custom: { name: 'f' } }))
    const request = { model: 'm', messages: [{ role: 'user', content }], tools }
    return () => {
      const ex = exchange({ request, target: target() })
      ex.observe(reports.slice(0, 1))
      return cpuMs(() => ex.observe(reports))
    }
  }
  timed(1)()
  const fine = (short: number, long: number) => long < 10 * short + 10
  const [short = 0, long = 0] = leastOf([timed(1), timed(20_000)], fine)
  t.ok(fine(short, long), `${short} ms, and ${long} ms`)
  t.end()
})

t.test('hours of silence in a small file are plausible, and more than it can hold are not', async t => {
  const rows: [reported: number, charged: number][] = [
    [10, 10],
    [11, 11],
    [1000, 320 * (1_000_000 / 8000 / 3600)],
  ]
  for (const [reported, charged] of rows) {
    const ex = exchange({
      endpoint: transcriptions[0]!,
      request: { model: 'm', file: { size: 1_000_000 }, response_format: 'json' },
      target: target({ mapping: {} }),
    })
    ex.observe([{ type: 'usage', usage: { input_audio_hour: reported } }])
    t.equal(ex.usage.input_audio_hour, charged)
  }
})
