/** The reasoning before calls, as it is kept for clients that drop it. */
import t from 'tap'
import type { Event, ReasoningEvent } from '../../src/core/event.ts'
import { KeptReasoning } from '../../src/filters/reasoning/kept-reasoning.ts'
import { eventsOf } from '../core/kit.ts'

const call: Event[] = [
  { type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', args: '{}' },
  { type: 'finish', choice: 0, reason: 'tool_calls' },
]
const reasoning = (text: string, more: Partial<ReasoningEvent> = {}): ReasoningEvent =>
  Object.assign({ type: 'reasoning' as const, choice: 0, text }, more)

/** What is kept of an answer; nothing of one that is too long. */
async function keptOf(events: readonly Event[]): Promise<{ events: readonly Event[]; bytes: number }[]> {
  const kept: { events: readonly Event[]; bytes: number }[] = []
  const answer = new KeptReasoning(eventsOf(events, call), (_, events, bytes) => void kept.push({ events, bytes }))
  for await (const batch of answer) void batch
  return kept
}

t.test('the pieces of one block are kept as one event, and no other event of the answer is changed', async t => {
  const [a, b] = [
    { format: 'x', block: 0 },
    { format: 'x', block: 1 },
  ]
  const given = Object.freeze(
    [
      reasoning('p'),
      reasoning('q'),
      reasoning('1', a),
      reasoning('2', a),
      reasoning('', { ...a, signature: 's' }),
      reasoning('3', a),
      reasoning('4', b),
      reasoning('', { ...b, data: 'd' }),
      reasoning('5', b),
    ].map(Object.freeze),
  ) as readonly Event[]
  const [kept] = await keptOf(given)
  t.strictSame(kept!.events, [
    reasoning('pq'),
    reasoning('12', { ...a, signature: 's' }),
    reasoning('3', a),
    reasoning('4', b),
    reasoning('', { ...b, data: 'd' }),
    reasoning('5', b),
  ])
})

t.test('an answer of many small pieces is kept in few events, or not at all', async t => {
  const count = 100_000
  const pieces = Array.from({ length: count }, () => reasoning('a', { format: 'x', block: 0 }))
  const [kept] = await keptOf(pieces)
  t.equal(kept!.events.length, 1)
  t.ok(kept!.bytes < 2 * count, `${kept!.bytes} bytes`)
  const rows: [says: string, piece: (place: number) => Event][] = [
    ['blocks in turn', place => reasoning('a', { format: 'x', block: place % 2 })],
    ['signed pieces', () => reasoning('a', { format: 'x', block: 0, signature: '' })],
    ['signed calls', () => ({ type: 'tool', choice: 0, index: 0, id: 'c', signature: '' })],
  ]
  for (const [says, piece] of rows) {
    t.equal((await keptOf(Array.from({ length: count }, (_, place) => piece(place)))).length, 0, says)
  }
})
