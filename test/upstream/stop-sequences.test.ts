/** Stop sequences that a provider's wire cannot carry end its answer all the same. */
import t from 'tap'
import type { Event } from '../../src/core/event.ts'
import type { Target } from '../../src/core/translator.ts'
import type { Decoder } from '../../src/core/wire.ts'
import { cutAtStops } from '../../src/upstream/stop-sequences.ts'
import { target } from '../plugins/wire-kit.ts'

const text = (text: string, choice = 0): Event => ({ type: 'text', choice, text })
const finish = (choice = 0): Event => ({ type: 'finish', choice, reason: 'stop' })
const usage: Event = { type: 'usage', usage: { prompt: 1, completion: 9 } }
const place: Target = target()
const cuts: Target = { ...place, translator: { ...place.translator, takesStop: () => false } }

/** Gives the events of each frame in turn. */
function read(
  frames: readonly (readonly Event[])[],
  stop: readonly string[],
  { n = 1, to = cuts, cancellable = true } = {},
) {
  const rest = [...frames]
  let cancelled = 0
  const inner: Decoder = { done: false, frame: () => [...(rest.shift() ?? [])], end: () => [] }
  const decoder = cutAtStops(inner, { stop, n }, to, cancellable ? () => void cancelled++ : undefined)
  const events: Event[] = []
  while (rest.length > 0 && !decoder.done) events.push(...decoder.frame({ data: '' }))
  events.push(...decoder.end())
  const said = (choice: number) =>
    events.flatMap(event => (event.type === 'text' && event.choice === choice ? event.text : [])).join('')
  const endings = events.flatMap(event => (event.type === 'finish' ? (event.ending?.fields.stop_sequence ?? null) : []))
  return { said: said(0), other: said(1), endings, events, left: rest.length, cancelled }
}

t.test('an answer is cut before its stop sequence, wherever deltas divide it', async t => {
  const whole = 'one two END three'
  for (let first = 0; first <= whole.length; first++) {
    for (let second = first; second <= whole.length; second++) {
      const pieces = [whole.slice(0, first), whole.slice(first, second), whole.slice(second)]
      const { said, endings } = read([...pieces.map(piece => [text(piece)]), [finish()]], ['END', 'never'])
      t.strictSame([said, endings], ['one two ', ['END']])
    }
  }
})

t.test('text that only resembles a sequence is given in full, before what follows it', async t => {
  const { said, endings } = read([[text('a EN')], [text('EN')], [finish(), usage]], ['END'])
  t.strictSame([said, endings], ['a ENEN', [null]])
  const tool: Event = { type: 'tool', choice: 0, index: 0, id: 'c', name: 'f', args: '{}' }
  const { events } = read(
    [
      [text('a EN'), tool],
      [text('D'), finish()],
    ],
    ['END'],
  )
  t.strictSame(
    events.map(({ type }) => type),
    ['text', 'text', 'tool', 'text', 'finish'],
  )
  t.equal(read([[text('a EN')]], ['END']).said, 'a EN', 'at the end of the bytes')
})

t.test('the first complete sequence ends the answer, and nothing more is read of its provider', async t => {
  const { said, endings, left } = read(
    [[text('a')], [text('b<stop>c')], [text('d')], [finish(), usage]],
    ['>', '<stop>'],
  )
  t.strictSame([said, endings, left], ['ab<stop', ['>'], 2])
  t.strictSame(read([[text('a'), text('STOPb'), usage, finish()]], ['STOP']).events.at(-1), usage, 'a whole answer')
})

t.test('each choice is cut at its own sequence', async t => {
  const frames = [[text('a'), text('x', 1)], [text('.b')], [text('y', 1)], [text('.z', 1)], [usage]]
  const { said, other, endings, left } = read(frames, ['.'], { n: 2 })
  t.strictSame([said, other, endings, left], ['a', 'xy', ['.', '.'], 1])
})

t.test('a wire that carries the sequence, for a mapping that takes it, keeps its own end', async t => {
  t.equal(read([[text('a.b')]], ['.'], { to: place }).said, 'a.b')
  const mapping = { ...place.mapping, parameters: new Set(['temperature']) }
  t.equal(read([[text('a.b')]], ['.'], { to: { ...place, mapping } }).said, 'a')
})

t.test('a cut cancels the provider once, or reads it to its end for its report', async t => {
  const frames = [[text('a.b')], [text('c')], [finish()], [usage]]
  const { cancelled, left, events } = read(frames, ['.'])
  t.strictSame([cancelled, left, events], [1, 3, [text('a'), events[1]]])
  const kept = read(frames, ['.'], { cancellable: false })
  t.strictSame([kept.cancelled, kept.said, kept.endings, kept.events.at(-1)], [0, 'a', ['.'], usage])
  t.equal(read([[text('a')], [finish()]], ['.']).cancelled, 0)
})

t.test('a citation and log probabilities do not divide the text that they are about', async t => {
  const source: Event = { type: 'source', choice: 0, url: 'https://a.example', start: 0, end: 2 }
  const rated: Event = { type: 'logprobs', choice: 0, of: 'content', tokens: [{}] }
  const { said, endings } = read([[text('a EN'), source, rated, text('D b')], [finish()]], ['END'])
  t.strictSame([said, endings], ['a ', ['END']])
})

t.test('a wire that takes a few sequences is sent these, and its answer is cut at the others', async t => {
  const stop = ['1', '2', '3', '4', '5', '6']
  const some = { ...place, translator: { ...place.translator, takesStop: (_: string, at: number) => at < 4 } }
  t.equal(read([[text('a4b5c')]], stop, { to: some }).said, 'a4b')
})
