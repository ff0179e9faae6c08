/** What the provider's input buffer may hold, by what it has answered. */
import fc from 'fast-check'
import t from 'tap'
import { InputBuffer } from '../../src/realtime/input-buffer.ts'
import { runs } from '../helpers/runs.ts'

/** What a client sends, how its provider answers it, and what both do in between. */
type Step =
  | { readonly kind: 'append'; readonly seconds: number }
  | { readonly kind: 'commit' | 'clear'; readonly answer: 'done' | 'refused' | 'unnamed' | 'none' }
  | { readonly kind: 'provider reads' | 'provider commits' | 'gateway reads' }

const step = fc.oneof(
  fc.record({ kind: fc.constant('append' as const), seconds: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ kind: fc.constant('commit' as const), answer: fc.constantFrom('done' as const, 'refused' as const) }),
  fc.record({ kind: fc.constant('clear' as const), answer: fc.constantFrom('done', 'refused', 'unnamed', 'none') }),
  fc.record({ kind: fc.constantFrom('provider reads', 'provider commits', 'gateway reads') }),
) as fc.Arbitrary<Step>

t.test('no commit is held for as less than its audio, whatever is refused', async () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const buffer = new InputBuffer()
      const toProvider: { id: string; step: Step }[] = []
      const answers: (() => boolean)[] = []
      let held = 0
      /** Commits by the provider that the gateway has not read: what the client sends meanwhile may count with either. */
      let unread = 0
      const commit = (isByClient: boolean) => {
        const seconds = held
        held = 0
        if (!isByClient) unread++
        answers.push(() => {
          if (!isByClient) unread--
          return buffer.committed().seconds >= seconds
        })
      }
      const isAudioNext = () => toProvider[0]?.step.kind === 'append'
      const read = () => {
        const { id, step } = toProvider.shift()!
        if (step.kind === 'append') held += step.seconds
        else if (step.kind !== 'commit' && step.kind !== 'clear') return
        else if (step.answer === 'refused') answers.push(() => buffer.refused(id) >= 0)
        else if (step.answer === 'unnamed') answers.push(() => buffer.refused(buffer.oldest(false), false) >= 0)
        else if (step.kind === 'commit') commit(true)
        else {
          held = 0
          if (step.answer === 'done') answers.push(() => buffer.cleared() === undefined)
        }
      }
      for (const [at, step] of steps.entries()) {
        const id = `${at}`
        if (unread > 0 && (step.kind === 'append' || step.kind === 'commit')) continue
        if (step.kind === 'append') buffer.append(step.seconds)
        else if (step.kind === 'commit') buffer.commit(id)
        else if (step.kind === 'clear') buffer.clear(id)
        else if (step.kind === 'provider reads' && toProvider.length > 0) read()
        else if (step.kind === 'provider commits' && buffer.commits === 0 && !isAudioNext()) commit(false)
        else if (step.kind === 'gateway reads' && answers.length > 0 && !answers.shift()!()) return false
        if (step.kind === 'append' || step.kind === 'commit' || step.kind === 'clear') toProvider.push({ id, step })
      }
      while (toProvider.length > 0) read()
      return answers.every(answer => answer())
    }),
    { numRuns: runs(1000) },
  )
})

t.test('what its provider answers in order is held for exactly', async t => {
  const buffer = new InputBuffer()
  buffer.append(5)
  buffer.clear('a')
  buffer.append(2)
  buffer.commit('b')
  buffer.cleared()
  t.strictSame(buffer.committed(), { isByClient: true, seconds: 2, more: 0 })
  t.strictSame(buffer.committed(), { isByClient: false, seconds: 0, more: 0 })
  buffer.append(3)
  t.strictSame(buffer.committed(), { isByClient: false, seconds: 3, more: 3 })
  t.equal(buffer.commits, 0)
})

t.test('what is refused counts with what was sent next', async t => {
  const buffer = new InputBuffer()
  buffer.append(5)
  buffer.clear('a')
  buffer.append(2)
  buffer.commit('b')
  buffer.append(1)
  t.equal(buffer.refused('a'), 0)
  t.equal(buffer.refused('of another'), 0)
  t.strictSame(buffer.committed(), { isByClient: true, seconds: 7, more: 5 })
  buffer.commit('c')
  t.equal(buffer.refused('c'), 1)
  t.strictSame(buffer.committed(), { isByClient: false, seconds: 1, more: 1 })
})

t.test('a refusal that names no clearing may be of any that waits', async t => {
  const buffer = new InputBuffer()
  buffer.clear('a')
  buffer.append(4)
  buffer.clear('b')
  buffer.append(3)
  buffer.commit('c')
  t.equal(buffer.refused(buffer.oldest(false), false), 0)
  t.equal(buffer.committed().seconds, 7)
})

t.test('of clearings that are never answered some are kept', async t => {
  const buffer = new InputBuffer()
  for (let clearing = 0; clearing < 300; clearing++) {
    buffer.append(1)
    buffer.clear(`${clearing}`)
  }
  t.equal(buffer.oldest(false), '44')
  t.equal(buffer.committed().seconds, 45)
})
