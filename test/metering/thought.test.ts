/** What is thought out of sight, and what a provider counts before its report (docs/money.md#holds). */
import fc from 'fast-check'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import type { Outbound } from '../../src/core/outbound.ts'
import type { Mapping } from '../../src/core/translator.ts'
import type { SentOutput } from '../../src/core/wire.ts'

import { errors } from '../../src/lib/error.ts'
import { Thought } from '../../src/metering/thought.ts'
import { exchange, text } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { runs } from '../helpers/runs.ts'
import { target } from '../plugins/wire-kit.ts'

const request = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(40) }], stream: true }
const reasoning = (said: string): Event => ({ type: 'reasoning', choice: 0, text: said })
const native: Event = { type: 'native', choice: 0, provider: 'acme', block: {} }
const call: Event = { type: 'tool', choice: 0, index: 0, id: 'c', name: 'abcd', args: '' }
const refusal: Event = { type: 'refusal', choice: 0, text: 'abcd' }
const finish: Event = { type: 'finish', choice: 0, reason: 'stop' }
const usage = (completion: number, thought?: number): Event => ({
  type: 'usage',
  usage: { prompt: 10, completion, ...(thought !== undefined && { internal_reasoning: thought }) },
})
const progress = (completion: number, thought: number): Event => ({
  type: 'progress',
  usage: { completion, internal_reasoning: thought },
})

/** A stream that was sent a minute ago to a model that writes 1000 tokens a second. */
function begun(
  supports: string[] = ['streaming', 'reasoning'],
  rates: Parameters<typeof flat>[0] = {},
  more: object = {},
  mapping: Partial<Mapping> = {},
) {
  const signal = new Cancellation()
  const price = flat({ prompt: '1', completion: '2', ...rates })
  const to = target({ mapping: { price, supports: new Set(supports) as never, maxOutput: 1_000_000, ...mapping } })
  const ex = exchange({ request: { ...request, ...more }, target: to, signal })
  ex.usualSpeed = () => 1000
  ex.atProvider = true
  const at = performance.now()
  ex.timings.sent = at - 60_000
  /** Tokens that have been thought since. */
  const since = () => performance.now() - at
  const leave = () => {
    signal.abort(errors.aborted())
    ex.completeUsage(true)
    return ex.usage
  }
  return { ex, leave, since }
}

t.test('a model thinks until the first of its answer stands behind the last of its reasoning', t => {
  const minute = 60_000
  const rows: [says: string, events: Event[], tokens: number, isOpen: boolean][] = [
    ['nothing yet', [], minute, true],
    ['a start', [{ type: 'start' }], minute, true],
    ['a word of a summary', [reasoning('Well')], minute, true],
    ['a block of the provider', [native], minute, true],
    ['an empty text', [text('')], minute, true],
    ['a text', [text('abcd')], minute + 1, false],
    ['a call', [call], minute + 1, false],
    ['a refusal', [refusal], minute + 1, false],
    ['an end', [finish], minute, false],
    ['a text behind a summary', [reasoning('Well'), native, text('abcd')], minute + 1, false],
    ['reasoning behind a text', [text('abcd'), reasoning('Well')], minute + 1, false],
    ['more reasoning than it had time for', [reasoning('x'.repeat(400_000)), text('abcd')], 100_001, false],
    ['a report of what was shown', [reasoning('Well'), usage(500)], 500, false],
    ['a report of thoughts alone', [usage(500, 500)], 500, false],
    ['a report that says nothing yet', [usage(1)], minute, true],
    ['a report, again', [text('abcd'), usage(500), reasoning('Well'), usage(500)], 501, false],
    ['a report before any text, again', [usage(8), text('x'.repeat(4000)), usage(8)], minute + 1000, false],
    ['a count', [reasoning('Well'), progress(20_000, 19_000)], 20_000, false],
    ['a count that a report takes the place of', [reasoning('a'), progress(20_000, 9), usage(12_000)], 12_000, false],
    ['a count of an answer that began afresh', [{ type: 'start' }, progress(99_000, 9), { type: 'start' }], 0, false],
  ]
  for (const [says, events, tokens, isOpen] of rows) {
    const { ex, since } = begun()
    for (const event of events) ex.observe([event])
    const found = ex.answerTokens
    t.ok(found >= tokens && found <= tokens + since(), `${says}: ${found}`)
    // As if it had been sent a minute earlier.
    ex.timings.sent -= minute
    const later = ex.answerTokens
    t.equal(later >= found + minute, isOpen, `${says}, later: ${later}`)
  }
  const plain = begun(['streaming'])
  plain.ex.observe([text('abcd')])
  t.equal(plain.ex.answerTokens, 1, 'a model that does not think')
  const whole: [says: string, supports: string[], sent: SentOutput | undefined][] = [
    ['a stream of a model that streams nothing', [], undefined],
    ['a stream that its wire cannot carry', ['streaming'], { whole: true }],
  ]
  for (const [says, supports, sent] of whole) {
    const { ex, leave } = begun(supports)
    ex.outbound.output = sent
    t.ok((leave().completion ?? 0) >= minute, says)
  }
  t.end()
})

t.test('a report that says no more than the one before takes nothing from what came since', t => {
  const event = fc.oneof(
    fc.nat(40).map(length => text('x'.repeat(length))),
    fc.nat(40).map(length => reasoning('x'.repeat(length))),
    fc.nat(40).map(completion => usage(completion)),
  )
  const step = fc.tuple(event, fc.boolean())
  fc.assert(
    fc.property(fc.array(step), steps => {
      const once = begun(['streaming']).ex
      const often = begun(['streaming']).ex
      let last = usage(0)
      for (const [event, repeats] of steps) {
        if (event.type === 'usage') last = event
        once.observe([event])
        often.observe(repeats ? [event, last] : [event])
        if (often.answerTokens !== once.answerTokens) return false
      }
      return true
    }),
    { numRuns: runs(1000) },
  )
  t.end()
})

t.test('what is thought between two pieces of an answer counts from the first of them on', t => {
  const thought = new Thought()
  t.equal(thought.time(1500, 1000), 500)
  thought.ends(2000, 1000)
  t.equal(thought.time(9000, 1000), 1000)
  thought.ends(5000, 1000)
  thought.goesOn()
  t.equal(thought.time(6000, 1000), 2000)
  thought.ends(7000, 1000)
  t.equal(thought.time(9000, 1000), 3000)
  thought.goesOn()
  thought.reported(10, 8000)
  t.equal(thought.time(8500, 1000), 500, 'what was reported counts no more')
  thought.bytes = 40
  t.strictSame([thought.tokens(3), thought.tokens(30)], [20, 40], 'the larger of what is shown and what is not')
  t.equal(new Thought().time(1500, 0), 0, 'nothing was sent')
  t.end()
})

t.test('no model thinks beyond the limit that it was sent, or its own', t => {
  const open = { limit: Number.POSITIVE_INFINITY }
  const limit = { max_tokens: 100 }
  const image: Event = { type: 'image', choice: 0, url: 'data:image/png;base64,AAAA' }
  const rows: [
    says: string,
    given: { more?: object; mapping?: Partial<Mapping>; sent?: Partial<Outbound>; events?: Event[] },
    tokens: number,
  ][] = [
    ['the caller', { more: limit }, 100],
    ['of each choice', { more: { ...limit, n: 3 } }, 300],
    ['the model', { mapping: { maxOutput: 1000 } }, 1000],
    ['its context', { mapping: { maxOutput: undefined, contextLength: 2000 } }, 2000],
    ['one that is sent in its place', { more: { max_tokens: 1 }, sent: { output: { limit: 16 } } }, 16],
    ['what there is money for', { more: limit, sent: { limit: { tokens: 50, by: 'credit' } } }, 50],
    ['reasoning with one of its own', { more: limit, sent: { output: { limits: 2 } } }, 200],
    ['none is sent', { more: limit, sent: { output: open } }, 60_000],
    ['with a text', { more: limit, events: [text('x'.repeat(40))] }, 100],
    ['with a word of a summary', { more: limit, events: [reasoning('Well')] }, 100],
    ['with an image', { more: { max_tokens: 2000 }, events: [image] }, 2000],
  ]
  for (const [says, { more, mapping, sent, events = [] }, tokens] of rows) {
    for (const supports of [['streaming', 'reasoning'], ['reasoning'], []]) {
      const { ex, leave } = begun(supports, {}, more, mapping)
      Object.assign(ex.outbound, sent)
      for (const event of events) ex.observe([event])
      // Only what has no limit grows with the time.
      const isRight = (found = 0) => found === tokens || (sent?.output === open && found > tokens)
      t.ok(isRight(ex.answerTokens), `${says}: ${ex.answerTokens}`)
      t.ok(isRight(leave().completion), `${says}, charged: ${ex.usage.completion}`)
    }
  }
  t.end()
})

t.test('a model that was sent a request without reasoning thinks nothing out of sight', t => {
  const none = { reasoning: { effort: 'none' } }
  const tool = { type: 'function', function: { name: 'f' } }
  const toggle = { field: 'thinking', on: true }
  const able = { ...toggle, off: false }
  const rows: [says: string, more: object, mapping: Partial<Mapping>, thinks: boolean][] = [
    ['none', none, {}, false],
    ['none, as a name', { reasoning_effort: 'none' }, {}, false],
    ['some', { reasoning: { effort: 'low' } }, {}, true],
    ['a budget beside none', { reasoning: { effort: 'none', max_tokens: 2000 } }, {}, true],
    ['none, which is offered', none, { reasoningEfforts: ['none', 'low'] }, false],
    ['none, which is not offered', none, { reasoningEfforts: ['low', 'high'] }, true],
    ['none, by a switch', none, { reasoningSwitch: able, reasoningEfforts: ['high'] }, false],
    ['none, for a switch that only turns it on', none, { reasoningSwitch: toggle }, true],
    ['a switch that is not turned', {}, { reasoningSwitch: able }, true],
    ['a tool that the switch excludes', { tools: [tool], tool_choice: 'required' }, { reasoningSwitch: able }, false],
    ['a tool that is left to the model', { tools: [tool], tool_choice: 'auto' }, { reasoningSwitch: able }, true],
    ['a tool of a model without a switch', { tools: [tool], tool_choice: 'required' }, {}, true],
  ]
  const rates = { internal_reasoning: '8' }
  for (const [says, more, mapping, thinks] of rows) {
    const { ex, leave } = begun(undefined, rates, more, mapping)
    ex.observe([text('abcd')])
    t.equal(ex.answerTokens > 1, thinks, says)
    const { completion, internal_reasoning: thought } = leave()
    t.strictSame([completion! > 1, thought !== undefined], [thinks, thinks], `${says}, charged`)
  }
  for (const more of [none, {}]) {
    const { ex, leave } = begun(['reasoning'], rates, more)
    const { completion = 0, internal_reasoning: thought } = leave()
    t.ok(completion >= 60_000, 'what comes whole is written out of sight in any case')
    t.equal(thought, undefined, 'and is the answer itself')
    t.equal(ex.cost?.total, BigInt(10_000 + 2000 * completion))
    const said = begun(['reasoning'], rates, more)
    said.ex.observe([reasoning('x'.repeat(400))])
    t.equal(said.leave().internal_reasoning, 100, 'but what it shows of its thoughts')
  }
  t.end()
})

t.test('thoughts of an answer that its client leaves cost their own rate, where there is one', t => {
  const cheap = { internal_reasoning: '8' }
  const rows: [
    says: string,
    rates: Record<string, string>,
    events: Event[],
    hidden: number,
    thought: number | undefined,
  ][] = [
    ['one rate', {}, [reasoning('Well'), text('abcd')], 60_000, undefined],
    ['two', cheap, [reasoning('Well'), text('abcd')], 60_000, 60_000],
    ['reasoning that was shown', cheap, [reasoning('x'.repeat(400_000)), text('abcd')], 100_000, 100_000],
    ['a count', cheap, [reasoning('Well'), progress(20_000, 19_000), text('abcd')], 20_000, 19_000],
    ['a count alone', {}, [reasoning('Well'), progress(20_000, 19_000)], 19_999, 19_000],
    ['a report', cheap, [reasoning('Well'), text('abcd'), usage(500, 400)], 499, 400],
  ]
  for (const [says, rates, events, hidden, thought] of rows) {
    const { ex, leave, since } = begun(undefined, rates)
    for (const event of events) ex.observe([event])
    const { completion = 0, internal_reasoning: own } = leave()
    const grown = completion - hidden - 1
    t.ok(grown >= 0 && grown <= since(), `${says}: ${completion}`)
    t.equal(own === undefined, thought === undefined, says)
    t.ok(thought === undefined || (own! >= thought && own! <= thought + since()), `${says}: ${own}`)
    ex.completeUsage(true)
    const isEstimated = events.at(-1)?.type !== 'usage'
    const { completion: again = 0, internal_reasoning: ownAgain = 0 } = ex.usage
    t.ok(again >= completion && again - hidden - 1 <= since(), `${says}, again: ${again}`)
    t.equal(ex.estimated, isEstimated, says)
    const own8 = 'internal_reasoning' in rates ? ownAgain : 0
    t.equal(ex.cost?.total, BigInt(10_000 + 2000 * (again - own8) + 8000 * own8), says)
  }
  t.end()
})
