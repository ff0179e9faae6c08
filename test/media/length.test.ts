/** Lengths of audio and video, by what files say of themselves. */
import fc from 'fast-check'
import t from 'tap'
import { wavHead } from '../../src/lib/wav.ts'
import { mediaSeconds, usualBytesPerSecond } from '../../src/media/length.ts'
import { Base64File, MEDIA_BUDGET, PiecedFile } from '../../src/media/source.ts'
import { film } from '../../src/operations/videos/demo.ts'
import { runs } from '../helpers/runs.ts'
import { adts, aiff, flac, latin, m4a, opus, page, slow, tag, times, usual, vorbis, webm } from './files.ts'

const seconds = (bytes: Buffer, budget = { ...MEDIA_BUDGET }) =>
  mediaSeconds(new Base64File(bytes.toString('base64')), budget)
const rounded = (value: number | undefined) => value && Math.round(value * 10) / 10

const wav = (bytes: number, said?: number) => Buffer.concat([wavHead(24_000, said), Buffer.alloc(bytes)])

t.test('a file is as long as it says', async t => {
  const rows: [says: string, file: Buffer, seconds: number | undefined][] = [
    ['WAV', wav(480_000, 480_000), 10],
    ['WAV of a stream, whose head says no length', wav(480_000), 10],
    [
      'WAV behind other chunks',
      Buffer.concat([wav(0).subarray(0, 36), latin('LIST\x04\0\0\0abcd'), wav(480_000).subarray(36)]),
      10,
    ],
    ['FLAC', Buffer.concat([flac(44_100, 441_000), Buffer.alloc(50_000)]), 10],
    ['FLAC behind a tag', Buffer.concat([tag(5000), flac(44_100, 441_000), Buffer.alloc(50_000)]), 10],
    ['FLAC of a stream', Buffer.concat([flac(44_100, 0), Buffer.alloc(50_000)]), undefined],
    ['AIFF', aiff(16_000, 320_000), 10],
    ['MP3', times(383, usual), 10],
    ['MP3 of 8 kbit/s', times(1000, slow), 72],
    ['MP3 behind a tag', Buffer.concat([tag(9000), times(383, usual)]), 10],
    ['AAC', times(431, adts(371)), 10],
    ['Opus in Ogg', opus(10), 10],
    ['Vorbis in Ogg', vorbis(10), 10],
    ['Ogg of another codec', Buffer.concat([page(0, latin('Speex')), page(48_000)]), undefined],
    ['M4A', m4a(10), 10],
    ['M4A with its index first', m4a(10, 1000, false), 10],
    ['M4A with an index behind much', m4a(600, 5_000_000), 600],
    ['the sound of a film', m4a(30, 1000, true, 'isom'), 30],
    ['a film without sound', film(30), undefined],
    ['WebM', webm(10), 10],
    ['WebM of a browser, which says none', webm(undefined), undefined],
    ['text', latin('plain text'), undefined],
    ['no bytes', Buffer.alloc(0), undefined],
    ['a tag alone', tag(500), undefined],
    ['a tag that says more than there is', tag(500).subarray(0, 100), undefined],
  ]
  for (const [says, file, expected] of rows) {
    t.equal(rounded(await seconds(file)), expected, says)
    const cut = [file.subarray(0, 7), file.subarray(7, 5000), file.subarray(5000)]
    const pieced = new PiecedFile({ pieces: cut, size: file.length })
    t.equal(rounded(await mediaSeconds(pieced, { ...MEDIA_BUDGET })), expected, `${says}, in pieces`)
  }
})

t.test('a head that lies says no more and no less than the size allows', async t => {
  t.equal(await seconds(Buffer.concat([flac(44_100, 1), Buffer.alloc(15_360_000 - 42)])), 10)
  t.equal(await seconds(Buffer.concat([flac(1, 0x7fff_ffff), Buffer.alloc(208)])), 10)
  t.equal(await seconds(webm(1e9, 250)), webm(1e9, 250).length / 25)
})

t.test('a file beyond the budget has no known length', async t => {
  t.equal(await seconds(m4a(10), { work: 50 }), undefined)
  t.equal(await seconds(m4a(10), { work: 300 }), undefined)
  const budget = { work: 5000 }
  t.equal(await seconds(m4a(10), budget), 10)
  t.ok(budget.work > 0 && budget.work < 4000, `${budget.work}`)
})

t.test('no bytes make a reader reject', async () => {
  const heads = [wav(0), flac(44_100, 9), aiff(16_000, 8), usual, adts(30), opus(1), m4a(1), webm(1), tag(20)]
  const damage = fc.tuple(
    fc.constantFrom(...heads),
    fc.array(fc.tuple(fc.nat({ max: 400 }), fc.nat({ max: 255 })), { maxLength: 8 }),
    fc.uint8Array({ maxLength: 500 }),
  )
  await fc.assert(
    fc.asyncProperty(damage, async ([head, changes, rest]) => {
      const file = Buffer.concat([head.subarray(0, 600), rest])
      for (const [at, byte] of changes) if (at < file.length) file[at] = byte
      const found = await seconds(file)
      return found === undefined || (found > 0 && found <= file.length / 25)
    }),
    { numRuns: runs(500) },
  )
})

t.test('speech that is not counted has a usual rate for its type', async t => {
  t.strictSame(
    ['audio/mpeg', 'audio/wav', 'audio/L16', 'audio/ogg', 'audio/aac'].map(usualBytesPerSecond),
    [16_000, 48_000, 48_000, 4000, 8000],
  )
})
