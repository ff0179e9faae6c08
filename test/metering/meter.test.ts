/** Measures answers: what a report names, what came since then, and what an answer without a report costs (docs/money.md#cost). */
import fc from 'fast-check'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import { errors } from '../../src/lib/error.ts'
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
const usage = (completion: number, reasoned?: number): Event => ({
  type: 'usage',
  usage: { prompt: 10, completion, ...(reasoned !== undefined && { internal_reasoning: reasoned }) },
})
const progress = (completion: number, reasoned: number): Event => ({
  type: 'progress',
  usage: { completion, internal_reasoning: reasoned },
})

/** A stream that was sent a minute ago. */
function begun(rates: Parameters<typeof flat>[0] = {}) {
  const signal = new Cancellation()
  const price = flat({ prompt: '1', completion: '2', ...rates })
  const supports = new Set(['streaming', 'reasoning'] as const)
  const ex = exchange({ request, target: target({ mapping: { price, supports, maxOutput: 1_000_000 } }), signal })
  ex.outbound.atProvider = true
  ex.timings.sent = performance.now() - 60_000
  const leave = () => {
    signal.abort(errors.aborted())
    ex.meter.complete(true)
    return ex.usage
  }
  return { ex, leave }
}

t.test('an answer has the tokens of its last report, and of what came since then', t => {
  const rows: [says: string, events: Event[], tokens: number][] = [
    ['nothing yet', [], 0],
    ['a start', [{ type: 'start' }], 0],
    ['a word of a summary', [reasoning('Well')], 1],
    ['a block of the provider', [native], 0],
    ['an empty text', [text('')], 0],
    ['a text', [text('abcd')], 1],
    ['a call', [call], 1],
    ['a refusal', [refusal], 1],
    ['an end', [finish], 0],
    ['a text behind a summary', [reasoning('Well'), native, text('abcd')], 2],
    ['much reasoning', [reasoning('x'.repeat(400_000)), text('abcd')], 100_001],
    ['a report of what was shown', [reasoning('Well'), usage(500)], 500],
    ['a report of reasoning alone', [usage(500, 500)], 500],
    ['a report that says nothing yet', [usage(1), text('abcd')], 1],
    ['a report, again', [text('abcd'), usage(500), reasoning('Well'), usage(500)], 501],
    ['a report before any text, again', [usage(8), text('x'.repeat(4000)), usage(8)], 1000],
    ['a count', [reasoning('Well'), progress(20_000, 19_000)], 20_000],
    ['a count that a report takes the place of', [reasoning('a'), progress(20_000, 9), usage(12_000)], 12_000],
    ['a count of an answer that began afresh', [{ type: 'start' }, progress(99_000, 9), { type: 'start' }], 0],
  ]
  for (const [says, events, tokens] of rows) {
    const { ex } = begun()
    for (const event of events) ex.observe([event])
    t.equal(ex.meter.tokens, tokens, says)
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
      const once = begun().ex
      const often = begun().ex
      let last = usage(0)
      for (const [event, repeats] of steps) {
        if (event.type === 'usage') last = event
        once.observe([event])
        often.observe(repeats ? [event, last] : [event])
        if (often.meter.tokens !== once.meter.tokens) return false
      }
      return true
    }),
    { numRuns: runs(1000) },
  )
  t.end()
})

t.test('reasoning of an answer that its client leaves costs its own rate, where there is one', t => {
  const dear = { internal_reasoning: '8' }
  const rows: [
    says: string,
    rates: Record<string, string>,
    events: Event[],
    completion: number,
    reasoned: number | undefined,
  ][] = [
    ['one rate', {}, [reasoning('Well'), text('abcd')], 2, undefined],
    ['two', dear, [reasoning('Well'), text('abcd')], 2, 1],
    ['nothing that was shown', dear, [], 0, undefined],
    ['a text alone', dear, [text('abcd')], 1, undefined],
    ['much of it', dear, [reasoning('x'.repeat(400_000)), text('abcd')], 100_001, 100_000],
    ['a count', dear, [reasoning('Well'), progress(20_000, 19_000), text('abcd')], 20_001, 19_000],
    ['a count alone', {}, [reasoning('Well'), progress(20_000, 19_000)], 20_000, 19_000],
    ['a report', dear, [reasoning('Well'), text('abcd'), usage(500, 400)], 500, 400],
  ]
  for (const [says, rates, events, completion, reasoned] of rows) {
    const { ex, leave } = begun(rates)
    for (const event of events) ex.observe([event])
    const { completion: found, internal_reasoning: own } = leave()
    t.strictSame([found, own], [completion, reasoned], says)
    ex.meter.complete(true)
    t.equal(ex.usage.completion, completion, `${says}: the same again`)
    t.equal(ex.estimated, events.at(-1)?.type !== 'usage', says)
    const own8 = 'internal_reasoning' in rates ? (reasoned ?? 0) : 0
    t.equal(ex.meter.cost?.total, BigInt(10_000 + 2000 * (completion - own8) + 8000 * own8), says)
  }
  t.end()
})
