/** What providers' events say, without their credential. */
import t from 'tap'
import { Mask } from '../../src/lib/mask.ts'
import { DeltaMasks } from '../../src/realtime/delta-masks.ts'

const KEY = 'sk-prod-8f2e91aa77c04d'
const mask = new Mask(KEY)

t.test('a credential that comes in pieces is masked in each text by itself', t => {
  const key = KEY
  const masks = new DeltaMasks(mask)
  const shown = (type: string, item: string, delta: unknown) => {
    const event = { type, item_id: item, delta }
    const text = JSON.stringify(event)
    const clean = masks.apply(event, text)
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
