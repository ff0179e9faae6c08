/** What may be looked at to find how long audio lasts: the files of a request share it, and no bytes make it dear. */
import fc from 'fast-check'
import t from 'tap'
import { type AudioBudget, audioLength } from '../../src/lib/audio-seconds.ts'
import { LetterNames } from '../../src/lib/letter-names.ts'
import { videoSeconds } from '../../src/lib/video-seconds.ts'
import { film } from '../../src/operations/videos/film.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'
import { runs } from '../helpers/runs.ts'

const MIB = 1024 * 1024
const lengthOf = (file: Buffer, budget?: AudioBudget) => audioLength({ pieces: [file], size: file.length }, budget)

const box = (name: string, data: Buffer) => {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(data.length + 8)
  head.write(name, 4)
  return Buffer.concat([head, data])
}
const type = box('ftyp', Buffer.from('M4A \0\0\0\0'))
/** A box of movies that is full of `fill`, with tables of frames at its end. */
const movie = (bytes: number, fill: string, tables: number) => {
  const data = Buffer.alloc(bytes, fill)
  for (let table = 1; table <= tables; table++) data.write('stsz', bytes - 4 * table)
  return Buffer.concat([type, box('moov', data)])
}

t.test('names are found wherever they stand', async t => {
  const names = ['hdlr', 'mdhd', 'stsz', 'stz2']
  const finder = new LetterNames(...names)
  const bytes = fc.array(fc.constantFrom(...names, 'h', 'd', 'l', 'r', 'm', 's', 't', 'z', '\xff'), { maxLength: 40 })
  fc.assert(
    fc.property(bytes, fc.nat({ max: 8 }), (parts, from) => {
      const text = parts.join('')
      const expected = names.map(name => text.indexOf(name, from)).filter(at => at >= 0)
      t.equal(finder.next(Buffer.from(text, 'latin1'), from), expected.length > 0 ? Math.min(...expected) : -1, text)
    }),
    { numRuns: runs(300) },
  )
})

t.test('the search of a movie costs the same for many tables as for few, whatever stands between them', async t => {
  for (const fill of ['r', 'hdl', 'dlr', 'm']) {
    const [few, many] = [movie(MIB, fill, 8), movie(MIB, fill, 256)]
    const fine = (one: number, other: number) => other < 4 * one
    const [one, other] = leastOf([() => cpuMs(() => lengthOf(few)), () => cpuMs(() => lengthOf(many))], fine)
    t.ok(fine(one!, other!), `${fill}: ${one} and ${other} ms`)
  }
})

t.test('a name that begins in the size of a box hides none', async t => {
  const bytes = film(30)
  const size = Buffer.from(bytes)
  size.write('soun', size.indexOf('hdlr') + 12)
  size.write('md', size.indexOf('hdlr') - 2)
  size.writeUInt32BE(96_000 * 2, size.indexOf('stsz') + 12)
  t.equal(lengthOf(size)?.seconds, 2048)
})

t.test('movies of a request share what is looked at', async t => {
  const rows: [says: string, file: Buffer, steps: number][] = [
    ['bytes', movie(32 * 1000, '\0', 0), 1003],
    ['names', movie(64, 'stsz', 16), 19],
    ['boxes', Buffer.concat([type, ...Array.from({ length: 1000 }, () => box('free', Buffer.alloc(0)))]), 1001],
  ]
  for (const [says, file, most] of rows) {
    const budget = { steps: 10_000 }
    lengthOf(file, budget)
    t.ok(10_000 - budget.steps >= most - 3 && 10_000 - budget.steps <= most + 3, `${says}: ${10_000 - budget.steps}`)
  }
  const [file, budget] = [film(30), { steps: 100 }]
  t.equal(lengthOf(file, budget)?.seconds, 30)
  t.equal(lengthOf(file, budget)?.seconds, 30)
  for (let files = 0; files < 20; files++) lengthOf(file, budget)
  t.equal(lengthOf(file, budget), undefined, 'nothing is left')
  t.equal(videoSeconds(file, budget), 0, 'nor for films')
  t.equal(lengthOf(movie(17 * MIB, '\0', 0)), undefined, 'a movie that is larger than all of it')
})

t.test('bytes of Opus take steps, and more where pages may begin', async t => {
  const first = Buffer.concat([Buffer.from('OggS'.padEnd(26, '\0')), Buffer.from([1, 8]), Buffer.from('OpusHead')])
  const lacing = Buffer.alloc(255, 255)
  const page = (fill: string) =>
    Buffer.concat([Buffer.from('OggS'.padEnd(26, '\0')), Buffer.from([255]), lacing, Buffer.alloc(255 * 255, fill)])
  const stepsOf = (pages: number, fill: string) => {
    const budget = { steps: 1_000_000 }
    lengthOf(Buffer.concat([first, ...Array.from({ length: pages }, () => page(fill))]), budget)
    return 1_000_000 - budget.steps
  }
  for (const [fill, least] of [
    ['\0', 65],
    ['O', 16_000],
  ] as const) {
    const one = stepsOf(10, fill) - stepsOf(9, fill)
    t.ok(one >= least, `${fill}: ${one} steps of a page`)
  }
  t.equal(lengthOf(Buffer.concat([first, ...Array.from({ length: 40 }, () => page('O'))])), undefined)
  t.ok(lengthOf(Buffer.concat([first, ...Array.from({ length: 40 }, () => page('\0'))])))
})
