/** Streams of very many frames are decoded in turns with others, and end where they say nothing for too long. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Cancellation } from '../../src/core/cancel.ts'
import type { Event } from '../../src/core/event.ts'
import { MemoryBudget } from '../../src/core/memory-budget.ts'
import type { Decoder, Frame } from '../../src/core/translator.ts'
import { Turns } from '../../src/lib/turns.ts'
import { Answer } from '../../src/upstream/answer.ts'
import { AnswerMemory } from '../../src/upstream/answer-memory.ts'
import type { Source } from '../../src/upstream/encoding.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import type { UpstreamResponse } from '../../src/upstream/upstream-response.ts'

const READ = 64 * 1024
const SAID = 'data:say\n\n'
const END = 'data:end\n\n'

/** Frames that say nothing yield no event, as those of a kind that a wire does not have. */
class CountingDecoder implements Decoder {
  frames = 0
  done = false

  frame({ data }: Frame): Event[] {
    this.frames++
    this.done = data === 'end'
    return data === 'say' ? [{ type: 'text', choice: 0, text: 'a' }] : []
  }

  end(): Event[] {
    return []
  }
}

const turns = new Turns()

/** An answer whose source gives `takes` one by one. */
function answerOf(takes: Iterator<string | undefined>, tenant = 'org-1', shared = turns) {
  const source: Source = {
    async take() {
      const { value } = takes.next()
      return value === undefined ? undefined : [Buffer.from(value)]
    },
  }
  const incoming = { destroy() {}, release() {} } satisfies Partial<UpstreamResponse> as unknown as UpstreamResponse
  const decoder = new CountingDecoder()
  const answer = new Answer({
    incoming,
    source,
    framing: new SseFraming(),
    decoder,
    lease: new AnswerMemory(new MemoryBudget(READ * 1024, { memory: () => 0 })).lease(tenant, new Cancellation()),
    isHeld: false,
    mayCallTools: false,
    inTurn: { turns: shared, tenant, isStream: true },
    mask: undefined,
    seals: undefined,
  })
  const events: Event[] = []
  const read = async () => {
    await answer.commit(false)
    for await (const batch of answer) events.push(...batch)
    return events
  }
  return { decoder, events, read }
}

const filled = (text: string, bytes = READ) => text.repeat(Math.floor(bytes / text.length))
function* times(count: number, first: string, each: string, last: string) {
  yield first
  for (let at = 0; at < count; at++) yield each
  yield last
}

/** The most that `count` grew by between two turns of the loop, until `work` is done. */
async function mostInTurn(work: Promise<unknown>, count: () => number): Promise<number> {
  let [most, before, isDone] = [0, 0, false]
  void work.finally(() => {
    isDone = true
  })
  while (!isDone) {
    await setImmediate()
    most = Math.max(most, count() - before)
    before = count()
  }
  return most
}

for (const [what, each, frames] of [
  ['reads of tiny frames', filled('data:{}\n\n'), 7281],
  ['small pieces of tiny frames', filled('data:{}\n\n', 4000), 444],
  ['reads of tiny events', filled(SAID), 6553],
] as const) {
  t.test(`${what}: four streams decode in one turn of the loop what fits in a slice`, async t => {
    const answers = ['a', 'a', 'b', 'c'].map(tenant => answerOf(times(3, SAID, each, END), tenant))
    const all = Promise.all(answers.map(({ read }) => read()))
    const decoded = () => answers.reduce((sum, { decoder }) => sum + decoder.frames, 0)
    const most = await mostInTurn(all, decoded)
    // Each stream is taken for an ordinary one until it has shown that it is not.
    t.ok(most <= 4 * 912, `${most} frames in one turn`)
    t.equal(decoded(), 4 * (3 * frames + 2), 'all of them in the end')
    const [last] = answers
    const again = answerOf(times(3, SAID, each, END))
    await again.read()
    t.same(last!.events, again.events, 'the same events')
  })
}

t.test('a stream of blank lines or comments is cut in turns, too', async t => {
  for (const line of ['\n', ':\n', ':\r']) {
    const counting = new (class extends Turns {
      count = 0
      override next(tenant: string): Promise<void> {
        this.count++
        return super.next(tenant)
      }
    })()
    const { read } = answerOf(times(3, SAID, filled(line), END), 'org-1', counting)
    t.equal((await read()).length, 1)
    t.ok(counting.count >= 3 * 3, `${counting.count} turns`)
  }
})

t.test('an ordinary stream waits for no turn', async t => {
  const never = new (class extends Turns {
    override next(): Promise<void> {
      throw new Error('a turn')
    }
  })()
  const delta = `data:say\n\n${`: ${'x'.repeat(200)}\n`}`
  const { read, decoder } = answerOf(times(2000, SAID, delta.repeat(5), END), 'org-1', never)
  t.equal((await read()).length, 10_001)
  t.equal(decoder.frames, 10_002)
})

t.test('a stream that yields no event for very long is a failure of its provider, a slow one is not', async t => {
  const forever = (first: string, each: string) => answerOf(times(1000, first, each, END))
  for (const [what, each] of [
    ['frames', filled('data:{}\n\n')],
    ['unknown lines', filled('x\n')],
    ['unknown lines and frames', filled(`${'x\n'.repeat(2000)}data:{}\n\n`)],
    ['bad times of a new try', filled('retry: x\n')],
  ] as const) {
    const after = forever(SAID, each)
    const events = await after.read()
    t.match(events.at(-1), { type: 'error', error: { code: 'upstream_invalid_response' } }, what)
    t.equal(events.length, 2)
    t.ok(after.decoder.frames < 220_000, `${after.decoder.frames} frames`)
    await t.rejects(forever('', each).read(), { code: 'upstream_invalid_response', failover: true }, what)
  }
  const pings = answerOf(times(3600, SAID, ': ping\n\n', END))
  t.equal((await pings.read()).length, 1, 'an hour of comments')
  const quiet = filled('data:{}\n\n', 16 * 1024)
  const between = answerOf(times(120, SAID, quiet + SAID, END))
  t.equal((await between.read()).length, 121, 'with an event now and then')
})
