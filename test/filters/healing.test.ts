/** Malformed JSON of callers who ask for its repair. */
import t from 'tap'
import type { Event } from '../../src/core/event.ts'
import type { Services } from '../../src/core/ports.ts'
import { heal } from '../../src/filters/healing/heal.ts'
import { type HealLimits, HealThreads } from '../../src/filters/healing/heal-threads.ts'
import { type HealingServices, healed, healing } from '../../src/filters/healing/index.ts'
import { errors } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { eventsOf, exchange, principal, text } from '../core/kit.ts'

t.test('JSON is found and repaired, and nothing else is touched', async t => {
  const rows: [says: string, text: string, healed: string][] = [
    ['valid JSON, spaces and all', ' {"a": 1}\n', ' {"a": 1}\n'],
    ['a valid scalar', '12', '12'],
    ['no JSON at all', 'I cannot do that.', 'I cannot do that.'],
    [
      'words in brackets',
      "I'll look at [the forecast] first: it {may} help.",
      "I'll look at [the forecast] first: it {may} help.",
    ],
    ['nothing', '', ''],
    ['a fence', '```json\n{"a":1}\n```', '{"a":1}'],
    ['a fence without a language, and words around', 'Sure:\n```\n[1,2]\n```\nDone.', '[1,2]'],
    ['a fence that never closes', '```json\n{"a":1', '{"a":1}'],
    ['words around', 'Here it is: {"a":{"b":[1]}} Enjoy!', '{"a":{"b":[1]}}'],
    ['a trailing comma', '{"a":1,}', '{"a":1}'],
    ['bare keys and single quotes', "{a: 'x'}", '{"a": "x"}'],
    ['a cut end', '{"a":[1,{"b":"c', '{"a":[1,{"b":"c"}]}'],
    ['Python words', '{"a": True, "b": None}', '{"a": true, "b": null}'],
    ['a comment', '{"a":1 /* one */}', '{"a":1 }'],
  ]
  for (const [says, given, healed] of rows) t.equal(heal(given), healed, says)
})

t.test('a fence inside of the JSON is a piece of it, and one around it may name any language', async t => {
  const code = { md: 'Use `x`:\n```\nprint([1,2])\n```\nDone', n: 2 }
  const raw = JSON.stringify(code).replaceAll('\\n', '\n')
  const cases: [text: string, json: unknown][] = [
    [raw, code],
    [`${raw.slice(0, -1)},}`, code],
    [`Sure:\n${raw}`, code],
    [`\`\`\`json\n${raw}\n\`\`\``, code],
    ['```json {"a":1} ```\n', { a: 1 }],
    ['Here:\n```json{"a":1,}```\nBye', { a: 1 }],
    ['```jsonc\n{"a":1,}\n```\nHope that {x} helps!', { a: 1 }],
    ['```js\n{"a":1}\n```\nHope that helps!', { a: 1 }],
    ['Note: [important]\n{"a":1,}', { a: 1 }],
    ['Based on [1], here it is:\n```json\n{"a":1,}\n```\nHope that helps!', { a: 1 }],
    ['By [1] and [2]:\n```json\n{"a":[1,2,],}\n```\n', { a: [1, 2] }],
    ['By [1]:\n```json\n{"a": 1, "b": "tex', { a: 1, b: 'tex' }],
    ['By [1]:\n```json\n[2]\n```', [2]],
    ['The schema is {"type":"object"}:\n```json\n{"a":1,}\n```', { a: 1 }],
    ['As {note: x} says:\n```json\n{"a":1,}\n```', { a: 1 }],
    ['```json\n// As asked\n{"a":1,}\n```\nSee [1]', { a: 1 }],
    ['```python\n[x for x in y]\n```\nthen\n```json\n{"a":1,}\n```', { a: 1 }],
  ]
  for (const [text, json] of cases) t.doesNotThrow(() => t.strictSame(JSON.parse(heal(text)), json, text), text)
})

const usual: HealLimits = { threads: 2, queue: 64, wait: 5000, work: 2000 }
const asked = { plugins: [{ id: 'response-healing' }], response_format: { type: 'json_object' } }
const ended = (choice = 0): Event => ({ type: 'finish', choice, reason: 'stop' })

/** What the filter needs, and what it says of answers that it could not heal. */
function services(bytes = 1024 * 1024 * 1024) {
  const unhealed: string[] = []
  const logged: object[] = []
  const memory = new MemoryBudget(bytes, { memory: () => 0 })
  const log = { warn: (fields: object) => void logged.push(fields) }
  const metrics = { unhealed: (reason: string) => void unhealed.push(reason) }
  const given: HealingServices = { memory, log, metrics }
  return { given, memory, unhealed, logged }
}

async function passed(request: object, ...batches: Event[][]): Promise<Event[][]> {
  const ex = exchange({ request: { model: 'm', messages: [], ...request } })
  const filter = healing.create(usual, services().given as Services)
  const reply = await filter.handle!(ex, async () => ({ status: 200, headers: [], events: eventsOf(...batches) }))
  const out: Event[][] = []
  for await (const batch of reply.events) out.push([...batch])
  return out
}

t.test('a text that was cut off keeps all that came, and JSON is found among words in brackets', async t => {
  const cases: [text: string, json: unknown][] = [
    ['{"a": {"b": 1}, "c": [1, 2], "d": 5', { a: { b: 1 }, c: [1, 2], d: 5 }],
    ['{"a": "text with } brace", "b": "cut', { a: 'text with } brace', b: 'cut' }],
    ['{"items": [{"id": 1}, {"id": 2}], "total": 2', { items: [{ id: 1 }, { id: 2 }], total: 2 }],
    ['Sure [as asked]: {"a": 1}', { a: 1 }],
    ['The answer is {"a": 1} (see [1]).', { a: 1 }],
    ['{"a": [1, 2], "b": 3,}', { a: [1, 2], b: 3 }],
    ["{'a': 'x}', 'b': 2}", { a: 'x}', b: 2 }],
  ]
  for (const [text, json] of cases) t.strictSame(JSON.parse(heal(text)), json, text)
})

t.test('an answer is held until it ends, and sent in one piece', async t => {
  const usage: Event = { type: 'usage', usage: { prompt: 1 } }
  const batches = [[text('{"a"')], [text(':1,}'), usage], [ended()]]
  t.strictSame(await passed(asked, ...batches), [[usage], [text('{"a":1}'), ended()]])
  t.strictSame(await passed({ ...asked, stream: true }, ...batches), [[usage], [text('{"a":1}'), ended()]])
  const two = [[text('[1,', 0), text('[2,', 1)], [ended(1)], [ended(0)]]
  const apart = [
    [text('[2]', 1), ended(1)],
    [text('[1]', 0), ended(0)],
  ]
  t.strictSame(await passed({ ...asked, n: 2 }, ...two), apart, 'each choice for itself')
  t.strictSame(await passed(asked, [text('[1,')]), [[text('[1]')]], 'also without a finish')
  const broken: Event = { type: 'error', error: errors.truncated() }
  t.strictSame(await passed(asked, [text('[1,')], [broken]), [[text('[1,'), broken]], 'what broke is not mended')
})

t.test('places in a text that was healed are places no more', async t => {
  const source = (start?: number): Event => ({
    ...{ type: 'source', choice: 0, url: 'https://a' },
    ...(start !== undefined && { start, end: start + 1 }),
  })
  const flat = async (...batches: Event[][]) => (await passed(asked, ...batches)).flat()
  t.strictSame(await flat([text('{"a":1,}'), source(1)], [ended()]), [text('{"a":1}'), source(), ended()])
  const sound = [text('{"a":1}'), source(1), source(2), ended()]
  t.strictSame(await flat(sound), sound, 'sound JSON stays as it is')
  const broken: Event = { type: 'error', error: errors.truncated() }
  t.strictSame(await flat([text('[1,'), source(0)], [broken]), [text('[1,'), source(0), broken])
  const tool: Event = { type: 'tool', choice: 0, index: 0, id: 'x', name: 'f', args: '{}' }
  t.strictSame(await flat([text('[a'), source(0)], [tool]), [text('[a'), source(0), tool])
  const long = text('x'.repeat(1024 * 1024 + 1))
  t.strictSame(await flat([text('x'), source(0), long]), [text(`x${'x'.repeat(1024 * 1024 + 1)}`), source(0)])
})

t.test('answers pass unchanged where the request names no format', async t => {
  const { plugins, response_format } = asked
  for (const request of [
    {},
    { plugins },
    { response_format },
    { plugins, response_format: { type: 'text' } },
    { ...asked, stream: true, n: 2 },
  ]) {
    t.strictSame(await passed(request, [text('[1,')], [ended()]), [[text('[1,')], [ended()]], JSON.stringify(request))
  }
})

t.test('text before calls, or of another phase, is no answer: it passes unchanged in its place', async t => {
  const tool: Event = { type: 'tool', choice: 0, index: 0, id: 'x', name: 'f', args: '{}' }
  const phase = (phase: 'commentary' | 'final_answer'): Event => ({ type: 'phase', choice: 0, phase })
  const flat = async (...batches: Event[][]) => (await passed(asked, ...batches)).flat()
  const called = [tool, { ...ended(), reason: 'tool_calls' } as Event]
  t.strictSame(await flat([text('Let me '), text('look [up')], called), [text('Let me look [up'), ...called])
  t.strictSame(await flat([phase('commentary'), text('On [it')], [phase('final_answer'), text('{a: 1}'), ended()]), [
    phase('commentary'),
    text('On [it'),
    phase('final_answer'),
    text('{"a": 1}'),
    ended(),
  ])
})

/** Threads that heal only when the test says so. */
function threads() {
  const running: {
    texts: readonly string[]
    done: (texts: readonly string[]) => void
    fail: (error: Error) => void
  }[] = []
  const counts = { started: 0, stopped: 0 }
  const start = () => {
    counts.started++
    return {
      run: (texts: readonly string[]) =>
        new Promise<readonly string[]>((done, fail) => void running.push({ texts, done, fail })),
      stop: () => void counts.stopped++,
    }
  }
  const aside = new HealThreads(start)
  /** Lets a thread end its work. */
  const finish = async (at = 0) => {
    const [job] = running.splice(at, 1)
    job!.done(job!.texts.map(heal))
    await new Promise(resolve => setImmediate(resolve))
  }
  return { aside, running, counts, finish }
}
const broken = (length: number) => `{"a":"${'x'.repeat(length)}",}`

t.test(
  'the work of one answer is bounded together: what is more than a little is done in a thread, at once',
  async t => {
    const { aside, running, finish } = threads()
    const { given, memory } = services()
    const all = Array.from({ length: 100 }, (_, choice) => text(broken(8000), choice))
    const ends = all.map((_, choice) => ended(choice))
    const events = healed(exchange({ principal }), eventsOf(all, ends), given, usual, aside)
    const next = events.next()
    await new Promise(resolve => setImmediate(resolve))
    t.strictSame(
      running.map(({ texts }) => texts.length),
      [100],
      'all choices together',
    )
    t.ok(memory.used > 1024 * 1024, 'what is held of them takes memory')
    await finish()
    const { value } = (await next) as { value: Event[] }
    t.equal(value.filter(event => event.type === 'text' && JSON.parse(event.text)).length, 100)
    t.ok((await events.next()).done)
    t.equal(memory.used, 0)
    const fenced = `\`\`\`json\n${JSON.stringify({ a: 'b'.repeat(1100) })}\n\`\`\``
    const small = Array.from({ length: 4 }, (_, choice) => text(fenced, choice))
    const inTurn = healed(
      exchange({ principal }),
      eventsOf(...small.map((one, choice) => [one, ended(choice)])),
      given,
      usual,
      aside,
    )
    for (let choice = 0; choice < 4; choice++) {
      const piece = inTurn.next()
      await new Promise(resolve => setImmediate(resolve))
      t.equal(running.length, choice < 3 ? 0 : 1, 'small ones that are sound are found here until they are many')
      if (running.length > 0) await finish()
      const [told] = ((await piece) as { value: Event[] }).value
      t.ok(told?.type === 'text' && JSON.parse(told.text))
    }
    const short = healed(exchange({ principal }), eventsOf([text("['a'", 0), ended(0)]), given, usual, aside).next()
    await new Promise(resolve => setImmediate(resolve))
    t.equal(running.length, 1, 'what needs a repair is healed in a thread, however short it is')
    await finish()
    t.match(await short, { value: [text('["a"]', 0), ended(0)] })
  },
)

t.test('three large answers of one organization do not keep those of another one from being healed', async t => {
  const { aside, running, finish } = threads()
  const results: string[] = []
  const ask = (org: string) =>
    void aside
      .heal(org, [broken(9000)], usual)
      .then(got => results.push(`${org} ${typeof got === 'string' ? got : 'healed'}`))
  for (let count = 0; count < 3; count++) ask('a')
  ask('b')
  await new Promise(resolve => setImmediate(resolve))
  t.equal(running.length, 2, 'one thread for each')
  await finish(1)
  t.strictSame(results, ['b healed'])
  for (let count = 0; count < 3; count++) await finish()
  t.strictSame(results, ['b healed', 'a healed', 'a healed', 'a healed'], 'and the others wait')
})

t.test('a change of the limits holds for the next answer, whatever runs', async t => {
  const { aside, running, finish } = threads()
  const ask = (org: string, threads: number) => aside.heal(org, [broken(9000)], { ...usual, threads })
  const first = ask('a', 1)
  const waits = ask('b', 1)
  await new Promise(resolve => setImmediate(resolve))
  t.equal(running.length, 1)
  const more = ask('c', 3)
  await new Promise(resolve => setImmediate(resolve))
  t.equal(running.length, 2, 'a raised number has a thread for it')
  await finish()
  t.equal(running.length, 2, 'and for what waited')
  for (let count = 0; count < 2; count++) await finish()
  for (const healed of await Promise.all([first, waits, more])) t.type(healed, Array)
})

t.test('the answer, the log and a metric report what could not be healed', async t => {
  const rows: [reason: string, limits: Partial<HealLimits>, bytes: number, length: number, fail?: true][] = [
    ['timeout', { work: 1 }, 1e9, 9000],
    ['busy', { queue: 0, threads: 0 }, 1e9, 9000],
    ['busy', { wait: 1, threads: 0 }, 1e9, 9000],
    ['busy', {}, 1024, 100_000],
    ['failed', {}, 1e9, 9000, true],
    ['too_long', {}, 1e9, 1024 * 1024],
  ]
  for (const [reason, limits, bytes, length, fails] of rows) {
    const { aside, running, counts } = threads()
    const { given, unhealed, logged } = services(bytes)
    const ex = exchange({ principal })
    const out: Event[] = []
    const events = healed(ex, eventsOf([text(broken(length))], [ended()]), given, { ...usual, ...limits }, aside)
    const reading = (async () => {
      for await (const batch of events) out.push(...batch)
    })()
    await new Promise(resolve => setImmediate(resolve))
    if (fails) running[0]!.fail(new Error('out of memory'))
    await reading
    t.strictSame(out, [text(broken(length)), ended()], `${reason}: it is passed on as it came`)
    t.equal(ex.answer.healingSkipped, reason)
    t.strictSame([unhealed, logged.length], [[reason], 1])
    t.equal(counts.stopped, reason === 'timeout' || fails ? 1 : 0, 'a thread that is late or broken is not used again')
  }
})

t.test('JSON of very many names is passed on as it came, and not parsed', async t => {
  const named = (count: number) => JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [n, 0])))
  const rows: [says: string, texts: string[], reason: string | undefined][] = [
    ['few names', [named(1000)], undefined],
    ['many names', [named(40_000)], 'too_long'],
    ['many names in two choices', [named(20_000), named(20_000)], 'too_long'],
    ['many levels', ['['.repeat(200)], 'too_long'],
  ]
  for (const [says, texts, reason] of rows) {
    const { given, unhealed } = services()
    const ex = exchange({ principal })
    const batch = texts.map((one, choice) => text(one, choice))
    const out: Event[] = []
    for await (const some of healed(ex, eventsOf(batch), given, usual, threads().aside)) out.push(...some)
    t.strictSame(out, batch, says)
    t.equal(ex.answer.healingSkipped, reason, says)
    t.strictSame(unhealed, reason === undefined ? [] : [reason], says)
  }
})
