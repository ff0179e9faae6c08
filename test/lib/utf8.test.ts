import t from 'tap'
import { utf8Text } from '../../src/lib/utf8.ts'
import { random } from '../helpers/random.ts'

const KIB = 1024
const characters = ['a', '"', '\\', '\n', '\0', 'é', 'ÿ', '\ufeff', '日', '\ud7ff', '\uffff', '😀', '\u{10ffff}']

t.test('text of any size and characters reads as V8 reads it', async t => {
  const chance = random(7)
  const different: string[] = []
  for (let round = 0; round < 200; round++) {
    const kinds = characters.slice(0, 1 + Math.floor(chance() * characters.length))
    const text = Array.from({ length: 100 }, () => kinds[Math.floor(chance() * kinds.length)]).join('')
    const bytes = Buffer.from(`${text}|`.repeat(1 + Math.floor(chance() * 20) * 100))
    const start = bytes.indexOf('|')
    const isSame = utf8Text(bytes) === bytes.toString('utf8')
    const isSamePart = utf8Text(bytes, start, bytes.length - 1) === bytes.toString('utf8', start, bytes.length - 1)
    if (!isSame || !isSamePart) different.push(`${JSON.stringify(kinds)}, ${bytes.length} bytes`)
  }
  t.strictSame(different, [])
})

t.test('a byte order mark within a large text stays', async t => {
  const bytes = Buffer.from(`\ufeff\ufeff${'é'.repeat(64 * KIB)}`)
  t.equal(utf8Text(bytes, 3), bytes.toString('utf8', 3))
})

t.test('bytes that are not UTF-8 read as V8 reads them', async t => {
  const text = Buffer.from('é'.repeat(64 * KIB))
  for (const wrong of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xf0, 0x9f]]) {
    const bytes = Buffer.concat([text, Buffer.from(wrong), text])
    t.equal(utf8Text(bytes), bytes.toString('utf8'), `${wrong}`)
  }
})
