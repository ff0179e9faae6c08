/** Estimates of answers that no provider has counted: at most the limit that was sent, or the model's own. */
import t from 'tap'
import type { Event } from '../../src/core/event.ts'
import type { Outbound } from '../../src/core/outbound.ts'
import { errors } from '../../src/lib/error.ts'
import { exchange, text } from '../core/kit.ts'
import { target } from '../plugins/wire-kit.ts'

const messages = [{ role: 'user', content: 'x'.repeat(40) }]
const long = ' '.repeat(24_000)
const args: Event = { type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', args: long }
const thought: Event = { type: 'reasoning', choice: 0, text: long }
const contents: readonly [says: string, events: Event[]][] = [
  ['text', [text(long)]],
  ['arguments of a call', [args]],
  ['reasoning', [thought, text('a')]],
  ['a refusal', [{ type: 'refusal', choice: 0, text: long }]],
  ['two choices', [text(long), { type: 'text', choice: 1, text: long }]],
  ['an early report', [{ type: 'usage', usage: { prompt: 10, completion: 1 } }, text(long)]],
]
const limits: readonly [says: string, request: object, sent: Partial<Outbound>, most: number][] = [
  ["the caller's limit", { max_tokens: 1500 }, {}, 1500],
  ['the limit of each choice', { max_tokens: 500, n: 3 }, {}, 1500],
  ['a limit that the wire raises', { max_tokens: 5 }, { output: { limit: 16 } }, 16],
  ['a limit that there is money for', { max_tokens: 1500 }, { limit: { tokens: 50, by: 'credit' } }, 50],
  ["the model's own", {}, {}, 2000],
  ["the model's own below the caller's", { max_tokens: 50_000 }, {}, 2000],
]

for (const [says, events] of contents) {
  t.test(`${says}: an estimate is at most the limit that was sent`, async t => {
    for (const [bound, more, sent, most] of limits) {
      for (const stream of [true, false]) {
        for (const ending of ['complete', 'cut', 'left'] as const) {
          const request = { model: 'm', messages, stream, ...more }
          const ex = exchange({ request, target: target({ mapping: { maxOutput: 2000 } }) })
          Object.assign(ex.outbound, sent)
          ex.outbound.atProvider = true
          ex.observe(events)
          if (ending === 'left') ex.signal.abort(errors.aborted())
          ex.meter.complete(ending !== 'complete')
          const isReported = says === 'an early report' && ending === 'complete'
          t.equal(ex.usage.completion, isReported ? 1 : most, `${bound}, stream: ${stream}, ${ending}`)
        }
      }
    }
  })
}
