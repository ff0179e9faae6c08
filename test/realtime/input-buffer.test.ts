/** Counts the audio in the provider's input buffer, by what it has answered. */
import t from 'tap'
import { InputBuffer } from '../../src/realtime/input-buffer.ts'

t.test('a commit has the audio that was sent before it, and the provider commits the rest', async t => {
  const buffer = new InputBuffer()
  buffer.append(5)
  buffer.clear()
  buffer.append(2)
  t.equal(buffer.commit('a'), 2)
  buffer.append(3)
  t.equal(buffer.commits, 1)
  t.strictSame(buffer.committed(), { isByClient: true, seconds: 2 })
  t.strictSame(buffer.committed(), { isByClient: false, seconds: 3 })
  t.strictSame(buffer.committed(), { isByClient: false, seconds: 0 })
  t.equal(buffer.commits, 0)
})

t.test('the audio of a commit that is refused is in the buffer again', async t => {
  for (const named of [true, false]) {
    const buffer = new InputBuffer()
    t.equal(buffer.refused(named ? 'of another' : undefined), 0)
    buffer.append(2)
    buffer.commit('a')
    buffer.append(1)
    buffer.commit('b')
    t.equal(buffer.refused(named ? 'a' : undefined), 2)
    t.strictSame(buffer.committed(), { isByClient: true, seconds: 1 })
    t.strictSame(buffer.committed(), { isByClient: false, seconds: 2 })
  }
})
