/** Large events are read in steps. */
import t from 'tap'
import { readEvent, readInTurns } from '../../src/realtime/events.ts'

t.test('a large event is read as it would be at once, in steps between which others go on', async t => {
  const audio = '\\u0041'.repeat(600_000)
  const rows: [says: string, text: string][] = [
    ['an event', `{"type":"input_audio_buffer.append","audio":"${audio}"}`],
    ['no JSON', `{"type":"input_audio_buffer.append","audio":"${audio}`],
    ['no object', `"${audio}"`],
    ['levels behind a long text', `{"type":"a","audio":"${audio}","more":${'['.repeat(200)}${']'.repeat(200)}}`],
  ]
  for (const [says, text] of rows) {
    let turns = 0
    let isRead = false
    const others = () => {
      turns++
      if (!isRead) setImmediate(others)
    }
    setImmediate(others)
    const read = await readInTurns(text)
    isRead = true
    t.strictSame(read, readEvent(text), says)
    t.equal(read === undefined, says !== 'an event', says)
    t.ok(turns >= 3, `${says}: ${turns} turns`)
  }
  t.notOk(readInTurns('{"type":"input_audio_buffer.clear"}') instanceof Promise, 'a small one needs no turn')
})
