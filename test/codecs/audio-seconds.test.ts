/** Lengths of audio, by what its files hold and by what their heads say (docs/contract.md#length-of-audio). */
import fc from 'fast-check'
import t from 'tap'
import { audioLength } from '../../src/lib/audio-seconds.ts'
import { audioType } from '../../src/lib/audio-type.ts'
import { ByteReader } from '../../src/lib/byte-reader.ts'
import { wavHead } from '../../src/lib/wav.ts'
import { film } from '../../src/operations/videos/film.ts'
import { runs } from '../helpers/runs.ts'
import {
  adts,
  flac,
  flacFrame,
  largest,
  lengthOf,
  mpeg,
  near,
  numbers,
  slow,
  tag,
  times,
  usual,
} from './audio-pieces.ts'

/** With a checksum. */
const protectedAdts = adts(373)
protectedAdts[1] = 0xf0
/** Slow frames, in the bodies of which fast ones begin that would follow one another. */
const nested = Buffer.concat(Array.from({ length: 100 }, () => slow))
for (let at = 417 + 5; at < nested.length; at += 417) {
  if (at % 72 >= 4 && at % 72 <= 68) usual.copy(nested, at, 0, 4)
}
/** An Ogg page of packets; the last one goes on where `open`, and the first one began before where `continued`. */
const page = (serial: number, packets: readonly Buffer[], open = false, continued = false) => {
  const lacing = packets.flatMap((packet, at) => {
    const full = Array.from({ length: Math.floor(packet.length / 255) }, () => 255)
    return open && at === packets.length - 1 ? full : [...full, packet.length % 255]
  })
  const head = Buffer.alloc(27)
  head.write('OggS')
  head[5] = Number(continued)
  head.writeUInt32LE(serial, 14)
  head[26] = lacing.length
  return Buffer.concat([head, Buffer.from(lacing), ...packets])
}
const opus = (serial: number) => [page(serial, [Buffer.from('OpusHead12345')]), page(serial, [Buffer.from('OpusTags')])]
const silence = (head: number, length = 3) => Buffer.concat([Buffer.from([head]), Buffer.alloc(length - 1)])

t.test('frames and packets are counted, whatever stands around them', async t => {
  const of = times
  const rows: [says: string, pieces: Buffer[], seconds: number | undefined][] = [
    ['MP3 of 128 kbit/s', of(100, usual), (100 * 1152) / 44_100],
    ['MP3 with padded frames', of(10, mpeg(0xfffb_9200, 418)), (10 * 1152) / 44_100],
    ['MP3 of 8 kbit/s', of(1000, slow), 72],
    ['layer I', of(10, mpeg(0xffff_1000, 32)), (10 * 384) / 44_100],
    ['layer II of version 2', of(10, mpeg(0xfff5_1000, 52)), (10 * 1152) / 22_050],
    ['MP3 behind a tag', [tag(3000), ...of(100, slow)], 7.2],
    ['MP3 behind two tags, one with a footer', [tag(30), tag(40, 0x10), ...of(100, slow)], 7.2],
    ['MP3 with other frames behind its own', [...of(50, slow), ...of(50, usual)], 3.6 + (50 * 417) / 1000],
    ['MP3 that is not proven before other frames', [...of(6, slow), ...of(50, usual)], undefined],
    ['AAC that is not proven before a gap', [...of(2, adts(371)), Buffer.alloc(9)], undefined],
    ['AAC before a gap', [...of(3, adts(371)), Buffer.alloc(80)], (3 * 1024) / 44_100 + 1],
    ['MP3 in files of the same rate', [...of(50, usual), ...of(50, mpeg(0xfffb_5000, 208))], (100 * 1152) / 44_100],
    [
      'MP3 with a frame of a table first',
      [Buffer.concat([usual.subarray(0, 36), Buffer.from('Xing'), usual.subarray(40)]), ...of(9, usual)],
      (10 * 1152) / 44_100,
    ],
    ['MP3 with two tags behind it', [...of(100, slow), Buffer.alloc(872, 'APETAGEX'), Buffer.alloc(128, 'TAG')], 8.2],
    ['MP3 with a frame alone behind it', [...of(100, slow), Buffer.alloc(100), slow, Buffer.alloc(28)], 7.272 + 0.2],
    ['MP3 that goes on behind a gap', [...of(100, slow), Buffer.alloc(1), ...of(2, slow)], undefined],
    ['MP3 behind a tag behind a gap', [...of(100, slow), Buffer.alloc(1), tag(300), ...of(100, slow)], undefined],
    ['fast frames that stand in slow ones', [usual.subarray(0, 10), nested], undefined],
    ['MP3 that is cut in a frame', [...of(10, slow), slow.subarray(0, 40)], 0.792],
    ['MP3 of free format', of(10, mpeg(0xfffb_0000, 417)), undefined],
    ['MP3 behind other bytes', [Buffer.alloc(100), ...of(10, usual)], undefined],
    ['AAC', of(100, adts(371)), (100 * 1024) / 44_100],
    ['AAC of silence, in frames of several blocks', of(100, adts(9, 4)), (100 * 4096) / 44_100],
    ['AAC of more than 2 KiB in a frame', of(3, adts(3000)), (3 * 1024) / 44_100],
    ['AAC with checksums', of(100, protectedAdts), (100 * 1024) / 44_100],
    ['AAC that goes on behind a gap', [...of(100, adts(371)), Buffer.alloc(1), ...of(2, adts(371))], undefined],
    ['AAC of a frame without room for its head', of(100, adts(9, 1, 6)), undefined],
    ['Opus', [...opus(1), ...of(50, page(1, of(50, silence(0x08))))], 50],
    [
      'Opus in one file after another',
      [...opus(1), page(1, [silence(0x08)]), ...opus(2), page(2, [silence(0x18)])],
      0.08,
    ],
    ['Opus of two and of several frames', [...opus(1), page(1, [silence(0x09), silence(0x0b, 3)])], 0.04],
    ['Opus of more frames than a packet may have', [...opus(1), page(1, [Buffer.from([0x1b, 63])])], 0.12],
    ['Opus of packets that are lost', [...opus(1), page(1, [Buffer.alloc(0)])], 0.12],
    ['Opus of hybrid and CELT frames', [...opus(1), page(1, [silence(0x60), silence(0x68), silence(0x80)])], 0.0325],
    [
      'Opus in a packet of two pages',
      [...opus(1), page(1, [silence(0x08, 510)], true), page(1, [silence(0xff, 10)], false, true)],
      0.02,
    ],
    [
      'Opus in a packet that no page goes on with',
      [...opus(1), page(1, [silence(0x80, 510)], true), page(1, [silence(0x08)])],
      0.0225,
    ],
    [
      'Opus in pages within a page',
      [...opus(1), page(1, [Buffer.concat([silence(0x80), page(1, [silence(0x08)])])])],
      undefined,
    ],
    ['Opus that is cut in a page', [...opus(1), page(1, [silence(0x08, 200)]).subarray(0, 100)], 0.02],
    ['Opus with other bytes behind it', [...opus(1), page(1, [silence(0x08)]), Buffer.from('x')], undefined],
    ['Opus behind a tag', [tag(300), ...opus(1), page(1, [silence(0x08)])], 0.02],
    ['Vorbis', [page(1, [Buffer.from('\x01vorbis and the rest')])], undefined],
    ['MP3 behind what is no tag', [Buffer.from('ID3\x04\0\0\0\0\x80\x05', 'latin1'), ...of(100, slow)], undefined],
    ['MP3 behind a tag of no version', [Buffer.from('ID3\xff\0\0\0\0\0\x05', 'latin1'), ...of(100, slow)], undefined],
    ['a tag alone', [tag(300)], undefined],
    ['a tag that is cut', [tag(300).subarray(0, 90)], undefined],
    ['nothing', [], undefined],
  ]
  for (const [says, pieces, seconds] of rows) {
    const length = lengthOf(...pieces)
    t.equal(length && near(length.seconds), seconds && near(seconds), says)
    if (length) t.equal(length.counted, true, says)
  }
})

t.test('an MP4 file is as long as its box says, wherever it stands, and as its frames are', async t => {
  const movie = film(30)
  const size = (bytes: number) => {
    const box = Buffer.alloc(16)
    box.writeUInt32BE(1, 0)
    box.write('free', 4)
    box.writeBigUInt64BE(BigInt(bytes + 16), 8)
    return Buffer.concat([box, Buffer.alloc(bytes)])
  }
  const silenced = Buffer.from(movie)
  for (const head of ['mvhd', 'mdhd']) {
    const at = silenced.indexOf(head) + 4
    silenced.writeUInt32BE(1, at + 16)
  }
  const many = Buffer.from(silenced)
  many.writeUInt32BE(96_000, many.indexOf('stsz') + 12)
  const sound = (file: Buffer) => {
    const bytes = Buffer.from(file)
    bytes.write('soun', bytes.indexOf('hdlr') + 12)
    return bytes
  }
  const plain = sound(movie)
  plain.writeUInt32BE(2, plain.indexOf('stsz') + 8)
  plain.writeUInt32BE(30 * 48_000, plain.indexOf('stsz') + 12)
  const with4 = (name: string, other: string) => Buffer.from(movie.toString('latin1').replace(name, other), 'latin1')
  const moov = movie.indexOf('moov') - 4
  const first = movie.readUInt32BE(0)
  const [type, media, about] = [movie.subarray(0, first), movie.subarray(first, moov), movie.subarray(moov)]
  const endless = Buffer.from(about)
  endless.writeUInt32BE(0, 0)
  const rows: [says: string, file: Buffer, seconds: number | undefined][] = [
    ['a file', movie, 30],
    ['its box first', Buffer.concat([type, about, media]), 30],
    ['behind a large box', Buffer.concat([type, size(100_000), about]), 30],
    ['a box that goes to the end', Buffer.concat([type, media, endless]), 30],
    ['a head that says less than its sound comes to', sound(many), 1024],
    ['sound that is not compressed', plain, 30],
    ['a file of which fragments might follow', with4('vmhd', 'mvex'), 30],
    ['a table that is compact', with4('stsc', 'stz2'), undefined],
    ['a file without the box', Buffer.concat([type, media]), undefined],
    ['a file that is cut in a box', movie.subarray(0, 100), undefined],
    [
      'a box that is smaller than its head',
      Buffer.concat([type, Buffer.from([0, 0, 0, 4]), Buffer.from('free'), about]),
      undefined,
    ],
  ]
  for (const [says, file, seconds] of rows) {
    const length = lengthOf(file)
    t.equal(length?.seconds, seconds, says)
    if (length) t.equal(length.counted, false, says)
  }
})

t.test('FLAC is as long as its frames are, whatever its head says', async t => {
  const second = flacFrame(7, 9, { samples: 44_100 })
  const odd = flac(44_100, 0)
  odd.writeUInt16BE(15, 8)
  const broken = Buffer.from(second)
  broken[second.length - 5]! ^= 1
  const rows: [says: string, pieces: Buffer[], seconds: number | undefined, counted?: boolean][] = [
    ['of a stream, whose head says none', [flac(44_100, 0), ...times(10, second)], 10],
    ['less than they come to', [flac(44_100, 441), ...times(10, second)], 10],
    ['more', [flac(44_100, 882_000), ...times(10, second)], 20],
    ['behind a tag', [tag(300), flac(44_100, 0), ...times(10, second)], 10],
    ['blocks of each form', [flac(48_000, 0), ...[1, 2, 5, 8, 15].map(code => flacFrame(code, 0))], 38_400 / 48_000],
    ['blocks of few samples', [flac(100, 0), ...times(10, flacFrame(6, 0, { samples: 100 }))], 10],
    [
      'numbers of each length',
      [flac(44_100, 0), ...[0, 127, 128, 2 ** 35].map(number => flacFrame(8, 0, { number }))],
      1024 / 44_100,
    ],
    ['a lower rate of a frame', [flac(44_100, 0), second, flacFrame(7, 4, { samples: 16_000 })], 3],
    [
      'rates behind the codes',
      [flac(1e5, 0), ...[12, 13, 14].map(code => flacFrame(15, code, { rate: 20_000 }))],
      3 * 1.6384,
    ],
    ['a higher one', [flac(44_100, 0), flacFrame(7, 3, { samples: 44_100 })], 1],
    [
      'frames with a wrong check, of a wrong number, and of odd codes',
      [
        flac(44_100, 441),
        broken,
        Buffer.from('fff8c908ff', 'hex'),
        Buffer.from('fff80f08fff8c9b8fff8c906fff8c909', 'hex'),
      ],
      0.01,
      false,
    ],
    ['an odd head', [odd, ...times(10, second)], 10, false],
    ['neither', [flac(44_100, 0)], undefined],
    ['a head that is cut', [flac(44_100, 441).subarray(0, 20)], undefined],
  ]
  for (const [says, pieces, seconds, counted = true] of rows) {
    const length = lengthOf(...pieces)
    t.equal(length && near(length.seconds), seconds && near(seconds), says)
    if (length) t.equal(length.counted, counted, says)
    const bytes = Buffer.concat(pieces)
    const small = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, at) => bytes.subarray(7 * at, 7 * at + 7))
    t.strictSame(lengthOf(...small), length, `${says}, in small pieces`)
  }
  const file = { pieces: [flac(44_100, 441_000), Buffer.alloc(8000, 0xff)], size: 8042 }
  t.equal(audioLength(file, { steps: 500 }), undefined, 'more than is looked at')
})

t.test('no bytes between frames make a file shorter than what it plays', async t => {
  const frames = fc.array(fc.oneof(fc.constant(slow), fc.uint8Array({ maxLength: 200 }).map(Buffer.from)), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(frames, fc.array(fc.nat({ max: 300 }), { maxLength: 20 }), (rest, cuts) => {
      const all = [slow, ...rest]
      const file = Buffer.concat(all)
      const played = all.filter(one => one === slow).length * 0.072
      const pieces: Buffer[] = []
      let at = 0
      for (const cut of cuts) {
        pieces.push(file.subarray(at, at + cut))
        at += cut
      }
      pieces.push(file.subarray(at))
      const length = lengthOf(...pieces)
      t.strictSame(length, lengthOf(file))
      return length === undefined || length.seconds >= played - 1e-9
    }),
    { numRuns: runs(200) },
  )
})

t.test('what is looked at of one request is bounded', async t => {
  const file = { pieces: [Buffer.concat(Array.from({ length: 1000 }, () => usual))], size: 417_000 }
  const budget = { steps: 500 }
  t.equal(near(audioLength(file, budget)!.seconds), near((500 * 1152) / 44_100 + (500 * 417) / 1000))
  t.equal(audioLength(file, budget), undefined, 'nothing is left')
  const pieces = [
    ...opus(1),
    page(
      1,
      Array.from({ length: 200 }, () => silence(0x08)),
    ),
  ]
  const packets = { pieces, size: Buffer.concat(pieces).length }
  t.equal(audioLength(packets, { steps: 100 }), undefined)
  t.ok(audioLength(packets, { steps: 1000 }))
})

t.test('bytes are read in whatever pieces they came', async t => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ max: 16, maxLength: 9 })),
      fc.array(fc.tuple(fc.constantFrom('byte', 'take', 'skip', 'passTo'), fc.nat({ max: 20 }))),
      (pieces, reads) => {
        const reader = new ByteReader(pieces.map(Buffer.from))
        const all = Buffer.concat(pieces)
        let at = 0
        for (const [read, count] of reads) {
          if (read === 'byte') {
            t.equal(reader.byte(), all[at] ?? -1)
            at++
          } else if (read === 'take') {
            t.strictSame(reader.take(count), all.subarray(at, at + count))
            at += count
          } else if (read === 'passTo') {
            const found = all.subarray(at, at + count).indexOf(7)
            const passed = found < 0 ? Math.min(count, all.length - at) : found
            t.equal(reader.passTo(7, count), passed)
            at += passed
          } else {
            t.equal(reader.skip(count), at + count <= all.length)
            at += count
          }
          at = Math.min(at, all.length)
        }
      },
    ),
    { numRuns: runs(200) },
  )
})

t.test('the first bytes of a file give its type, and a head the length of some', async t => {
  const wav = Buffer.concat([wavHead(24_000, 48_000), Buffer.alloc(48_000)])
  const rows: [head: Buffer, size: number, extension: string | undefined, seconds: number | undefined][] = [
    [wav, wav.length, 'wav', 1],
    [wavHead(24_000), 44 + 96_000, 'wav', 2],
    [wav.subarray(0, 30), 30, 'wav', undefined],
    [flac(44_100, 441_000), 1e6, 'flac', 10],
    [Buffer.from('ID3\x03rest of it'), 9, 'mp3', undefined],
    [Buffer.from('\xff\xfb\xf0rest of it', 'latin1'), 9, 'mp3', undefined],
    [Buffer.from('OggSrest of it'), 9, 'ogg', undefined],
    [Buffer.from('....ftypM4A '), 9, 'm4a', undefined],
    [Buffer.from('\x1aE\xdf\xa3rest', 'latin1'), 9, 'webm', undefined],
    [Buffer.from('plain text'), 9, undefined, undefined],
    [Buffer.alloc(0), 0, undefined, undefined],
  ]
  for (const [head, size, extension, seconds] of rows) {
    t.strictSame(
      [audioType(head)?.extension, audioLength({ pieces: [head], size })?.seconds],
      [extension, seconds],
      head.toString('latin1', 0, 8),
    )
  }
})

t.test('quiet samples are no frames, but for one file in a hundred at most', t => {
  const seconds = 2048 / 48_000
  for (const [bytes, decibels] of [
    [3, -96],
    [3, -90],
    [3, -84],
    [3, -70],
    [2, -80],
    [2, -60],
  ] as const) {
    const loudest = 2 ** (8 * bytes - 1) * 10 ** (decibels / 20)
    const random = numbers()
    const head = wavHead(48_000)
    head.writeUInt16LE(8 * bytes, 34)
    let unknown = 0
    for (let files = 0; files < 200; files++) {
      const samples = Buffer.alloc(2048 * bytes)
      for (let at = 0; at < samples.length; at += bytes) {
        const noise = random() + random() + random() + random() - 2
        samples.writeIntLE(Math.round(noise * 1.7 * loudest), at, bytes)
      }
      const length = lengthOf(head, samples)
      if (length) t.equal(near(length.seconds), near(seconds))
      else unknown++
    }
    t.ok(unknown <= 2, `${unknown} of ${8 * bytes} bits at ${decibels} dB of full scale`)
  }
  t.end()
})

t.test('a head that lies makes no audio shorter than its file allows', t => {
  const MB = 1e6
  /** 16,000 samples a second of two bytes each, in a file of 32,044 bytes for each second. */
  const wav = (lie: (head: Buffer) => void) => {
    const head = wavHead(16_000)
    lie(head)
    return head
  }
  const wide = (rate: number) =>
    wav(head => {
      head.writeUInt32LE(rate, 24)
      head.writeUInt16LE(24, 34)
    })
  const law = (tag: number, bits: number) =>
    wav(head => {
      head.writeUInt16LE(tag, 20)
      head.writeUInt16LE(bits, 34)
    })
  const chunk = (name: string, data: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(data.length)
    return Buffer.concat([Buffer.from(name), length, data])
  }
  const honest = wavHead(16_000)
  const [riff, format, data] = [honest.subarray(0, 12), honest.subarray(12, 36), honest.subarray(36)]
  const fast = Buffer.from(format)
  fast.writeUInt32LE(96_000, 12)
  const extensible = (tag: number, bits = 16, used = 0) => {
    const fields = Buffer.concat([format.subarray(8), Buffer.alloc(24)])
    fields.writeUInt16LE(0xfffe, 0)
    fields.writeUInt16LE(bits, 14)
    fields.writeUInt16LE(used, 18)
    fields.writeUInt16LE(tag, 24)
    return Buffer.concat([riff, chunk('fmt ', fields), data])
  }
  const flac = (rate: number, samples: number) => {
    const head = Buffer.alloc(42)
    head.write('fLaC')
    head.writeUIntBE(rate << 4, 18, 3)
    head.writeUInt32BE(samples, 22)
    return head
  }
  /** 1,536,000 bytes a second. */
  const floor = 16
  const size = 24 * MB + 576_000
  const whole = (size - 44) / 32_000
  const rows: [says: string, head: Buffer, seconds: number | undefined][] = [
    ['WAV of unknown length', honest, whole],
    ['WAV of length 0', wav(head => head.writeUInt32LE(0, 40)), whole],
    ['WAV of one sample', wav(head => head.writeUInt32LE(2, 40)), whole],
    ['WAV with a short chunk of data before the rest', Buffer.concat([riff, format, chunk('data', data), data]), whole],
    ['WAV of many bytes a second', wav(head => head.writeUInt32LE(0xffff_ffff, 28)), whole],
    ['WAV of large blocks', wav(head => head.writeUInt16LE(0xffff, 32)), whole],
    ['WAV of faster samples than speech has', wav(head => head.writeUInt32LE(0xffff_ffff, 24)), undefined],
    ['WAV of fast samples of 24 bits', wide(0xffff_ffff), floor],
    ['WAV of more channels than speech has', wav(head => head.writeUInt16LE(0xffff, 22)), undefined],
    ['WAV of large samples', law(1, 0xffff), undefined],
    ['WAV of odd samples', law(1, 12), undefined],
    ['WAV of A-law', law(6, 8), whole * 2],
    ['WAV of A-law with odd bits', law(6, 1536), whole * 2],
    ['WAV of mu-law with odd bits', law(7, 0), whole * 2],
    ['WAV of two formats', Buffer.concat([riff, format, fast, data]), (size - 68) / 32_000],
    ['WAV of two formats, the faster one first', Buffer.concat([riff, fast, format, data]), (size - 68) / 32_000],
    ['WAV of no samples a second', wav(head => head.writeUInt32LE(0, 24)), undefined],
    ['WAV that is compressed', wav(head => head.writeUInt16LE(0x55, 20)), undefined],
    ['extensible WAV', extensible(1), (size - 68) / 32_000],
    ['extensible WAV of fewer bits', extensible(1, 32, 20), (size - 68) / 48_000],
    ['extensible WAV of more bits than it has', extensible(1, 16, 64), (size - 68) / 32_000],
    ['extensible WAV of odd bits', extensible(1, 1536, 8), undefined],
    ['extensible WAV of mu-law', extensible(7, 1536, 64), (size - 68) / 16_000],
    ['WAV that holds MP3', Buffer.concat([honest, ...times(6, slow), Buffer.alloc(100)]), undefined],
    ['WAV that holds MP3 to its end', Buffer.concat([honest, slow, slow]), undefined],
    ['WAV that holds MP3 somewhat later', Buffer.concat([honest, Buffer.alloc(1023), ...times(6, usual)]), undefined],
    ['WAV that holds the largest frames', Buffer.concat([honest, Buffer.alloc(1023), ...times(6, largest)]), undefined],
    [
      'WAV that holds five frames and other bytes',
      Buffer.concat([honest, ...times(5, slow), Buffer.alloc(100)]),
      whole,
    ],
    ['WAV that holds AAC', Buffer.concat([honest, adts(371), adts(371), Buffer.alloc(100)]), undefined],
    ['WAV that holds large AAC', Buffer.concat([honest, Buffer.alloc(1023), adts(8191), adts(8191)]), undefined],
    ['WAV that holds what looks like a frame', Buffer.concat([honest, usual]), whole],
    ['extensible WAV that is compressed', extensible(0x55), undefined],
    ['extensible WAV that is cut', extensible(1).subarray(0, 40), undefined],
    ['FLAC of unknown length', flac(16_000, 0), undefined],
    ['FLAC of one sample', flac(16_000, 1), floor],
    ['FLAC of fast samples', flac(0xfffff, 16_000), floor],
    ['FLAC', flac(16_000, 16_000 * 1000), 1000],
    ['MP3 of one frame', Buffer.from('\xff\xfb\x90\0'.padEnd(417, '\0').concat('Xing\0\0\0\x01'), 'latin1'), undefined],
    // Of these no length is read.
    ['Ogg of one sample', Buffer.from('OggS\0\x04\x01'.padEnd(64, '\0'), 'latin1'), undefined],
    ['MP4 of no length', Buffer.from('\0\0\0\x08ftyp\0\0\0\x6cmvhd'.padEnd(128, '\0'), 'latin1'), undefined],
    ['WebM of no length', Buffer.from('\x1aE\xdf\xa3\x44\x89\x84'.padEnd(64, '\0'), 'latin1'), undefined],
  ]
  for (const [says, head, seconds] of rows) t.equal(audioLength({ pieces: [head], size })?.seconds, seconds, says)
  t.end()
})
