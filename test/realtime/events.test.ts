/** Large events are read in steps. */
import t from 'tap'
import { Mask } from '../../src/lib/mask.ts'
import { atOnce } from '../../src/lib/turns.ts'
import { DeltaMasks } from '../../src/realtime/delta-masks.ts'
import { readInTurns, writeSteps } from '../../src/realtime/events.ts'

const KEY = 'sk-prod-8f2e91aa77c04d'
const mask = new Mask(KEY)

t.test('a large event is read as it would be at once, in steps between which others go on', async t => {
  const audio = '\\u0041'.repeat(600_000)
  const rows: [says: string, text: string][] = [
    ['an event', `{"type":"input_audio_buffer.append","audio":"${audio}"}`],
    ['a credential', `{"type":"input_audio_buffer.append","audio":"${audio}","key":"${KEY}é","more":"${audio}"}`],
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
    const read = await readInTurns(Buffer.from(text), 'org-1', mask)
    isRead = true
    const isEvent = says === 'an event' || says === 'a credential'
    const shown = isEvent ? text.replace(KEY, '***') : undefined
    t.equal(read?.text, shown, says)
    t.strictSame(read?.event, shown && JSON.parse(shown), says)
    t.ok(turns >= 3, `${says}: ${turns} turns`)
    if (read) t.equal(`${atOnce(writeSteps(read.event))}`, JSON.stringify(read.event), says)
  }
  t.notOk(readInTurns('{"type":"input_audio_buffer.clear"}', 'org-1') instanceof Promise, 'a small one needs no turn')
})

t.test('a credential that comes in pieces is masked in each text by itself', t => {
  const key = KEY
  const masks = new DeltaMasks(mask)
  let large = false
  const shown = (type: string, item: string, delta: unknown) => {
    const event = { type, item_id: item, delta }
    const text = JSON.stringify(event)
    const clean = large ? atOnce(masks.applySteps(event, text)) : masks.apply(event, text)
    large = !large
    return (JSON.parse(clean) as { delta: unknown }).delta
  }
  const [a, b] = ['a', 'b'].map(name => 'x'.repeat(1000) + name)
  const written = { a: '', b: '' }
  for (let at = 0; at < key.length; at += 6) {
    const piece = key.slice(at, at + 6)
    written.a += shown('response.output_text.delta', a!, piece) as string
    written.b += shown('response.output_text.delta', b!, piece) as string
    t.equal(shown('response.output_audio.delta', 'a', piece), piece, 'audio is none')
  }
  for (const text of Object.values(written)) t.ok(text.includes('***') && !text.includes(key.slice(0, 18)), text)
  for (let n = 0; n < 100; n++) t.equal(shown('response.output_text.delta', `${n}`, 'Hi'), 'Hi')
  t.equal(shown('error', 'a', undefined), undefined)
  t.end()
})
