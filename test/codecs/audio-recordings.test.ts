/** Lengths of what browsers record, and of Vorbis: of clusters, of fragments, and of pages (docs/contract.md#length-of-audio). */
import fc from 'fast-check'
import t from 'tap'
import { audioLength } from '../../src/lib/audio-seconds.ts'
import { runs } from '../helpers/runs.ts'
import { lengthOf, near, times } from './audio-pieces.ts'

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
/** An element of EBML, its id in hexadecimal; of unknown size where `size` is that. */
const element = (id: string, data: Buffer, size: number | 'unknown' = data.length) => {
  const head = Buffer.concat([Buffer.from('10', 'hex'), u32(0).subarray(1)])
  if (size === 'unknown') head.writeUInt32BE(0x1fff_ffff)
  else head.writeUInt32BE(0x1000_0000 + size)
  return Buffer.concat([Buffer.from(id, 'hex'), head, data])
}
const text = (id: string, value: string) => element(id, Buffer.from(value, 'latin1'))
const number = (id: string, value: number) => element(id, u32(value))
const head = (type = 'webm') => element('1a45dfa3', text('4282', type))
const track = (codec: string, id = 1, type = 2, ...more: Buffer[]) =>
  element('ae', Buffer.concat([number('d7', id), number('83', type), text('86', codec), ...more]))
const tracks = (...of: Buffer[]) => element('1654ae6b', Buffer.concat(of.length > 0 ? of : [track('A_OPUS')]))
const info = (nanoseconds: number) => element('1549a966', number('2ad7b1', nanoseconds))
/** As long as so many bytes can say. */
const scaled = (bytes: number) => element('1549a966', element('2ad7b1', Buffer.alloc(bytes, 0xff)))
const blockData = (time: number, packet: Buffer, id = 1, flags = 0) => {
  const data = Buffer.concat([Buffer.from([0x80 + id, 0, 0, flags]), packet])
  data.writeInt16BE(time, 1)
  return data
}
/** Of 20 ms, by default. */
const packet = (first = 0x08, bytes = 3) => Buffer.concat([Buffer.from([first]), Buffer.alloc(bytes - 1)])
const block = (time: number, of = packet(), id = 1, flags = 0) => element('a3', blockData(time, of, id, flags))
const cluster = (time: number, blocks: readonly Buffer[], size?: 'unknown') =>
  element('1f43b675', Buffer.concat([number('e7', time), ...blocks]), size)
const segment = (parts: readonly Buffer[], size?: number | 'unknown') => element('18538067', Buffer.concat(parts), size)
const seek = (id: string) =>
  element('4dbb', Buffer.concat([element('53ab', Buffer.from(id, 'hex')), number('53ac', 9)]))
const second = Array.from({ length: 50 }, (_, at) => block(20 * at))
const plain = [tracks(), cluster(0, second)]
const webm = (...parts: Buffer[]) => Buffer.concat([head(), segment(parts)])
const Void = (data: Buffer) => element('ec', data)

t.test('WebM is as long as its packets of Opus, or as the times of its blocks where these go further', async t => {
  const live = cluster(0, second, 'unknown')
  const rows: [says: string, file: Buffer, seconds: number | undefined][] = [
    ['a file', webm(...plain), 1],
    ['Matroska', Buffer.concat([head('matroska'), segment(plain)]), 1],
    ['of unknown sizes', Buffer.concat([head(), segment([tracks(), live, live], 'unknown')]), 2],
    ['that is cut in a block', webm(...plain).subarray(0, -2), 1],
    ['with an index', webm(element('114d9b74', Buffer.concat([seek('1654ae6b'), seek('1f43b675')])), ...plain), 1],
    ['in groups', webm(tracks(), cluster(0, [element('a0', element('a1', blockData(0, packet())))])), 0.02],
    [
      'of a duration that a group says',
      webm(
        tracks(),
        cluster(0, [element('a0', Buffer.concat([element('a1', blockData(0, packet())), number('9b', 500)]))]),
      ),
      0.52,
    ],
    ['with a gap', webm(...plain, cluster(9000, second)), 9.98 + 0.02],
    ['that begins late', webm(tracks(), cluster(9000, second)), 1],
    ['of slow ticks', webm(info(2_000_000), ...plain), 1.96 + 0.02],
    ['whose times stand still', webm(tracks(), cluster(0, times(50, block(0)))), 1],
    ['of packets of several frames', webm(tracks(), cluster(0, [block(0, Buffer.from([0x0b, 3, 0]))])), 0.06],
    [
      'with pictures',
      webm(tracks(track('A_OPUS'), track('V_VP9', 2, 1)), cluster(0, [...second, block(0, packet(), 2)])),
      1,
    ],
    [
      'with pictures that last longer',
      webm(tracks(track('A_OPUS'), track('V_VP9', 2, 1)), cluster(0, [...second, block(3000, packet(), 2)])),
      3.02,
    ],
    ['of pictures alone', webm(tracks(track('V_VP9', 1, 1)), cluster(0, second)), undefined],
    ['of another codec', webm(tracks(track('A_VORBIS')), cluster(0, second)), undefined],
    ['of text', webm(tracks(track('A_OPUS'), track('S_TEXT/UTF8', 2, 17)), cluster(0, second)), undefined],
    ['of a block without a track', webm(tracks(), cluster(0, [block(0, packet(), 2)])), undefined],
    ['of two tracks of one number', webm(tracks(track('A_OPUS'), track('V_VP9', 1, 1)), cluster(0, second)), undefined],
    ['of two codecs', webm(tracks(track('A_OPUS', 1, 2, text('86', 'A_PCM/INT/LIT'))), cluster(0, second)), undefined],
    [
      'of packets that are encoded',
      webm(tracks(track('A_OPUS', 1, 2, element('6d80', Buffer.alloc(0)))), cluster(0, second)),
      undefined,
    ],
    ['of several packets in a block', webm(tracks(), cluster(0, [block(0, packet(), 1, 0x02)])), undefined],
    ['of an empty packet', webm(tracks(), cluster(0, [block(0, Buffer.alloc(0))])), 0.12],
    ['with tracks behind its clusters', webm(cluster(0, second), tracks()), undefined],
    ['with two lists of tracks', webm(tracks(), ...plain), undefined],
    ['with a cluster in what is skipped', webm(...plain, Void(cluster(0, second))), undefined],
    [
      'with a cluster in a packet',
      webm(tracks(), cluster(0, [block(0, Buffer.concat([packet(), cluster(0, second)]))])),
      undefined,
    ],
    ['with tracks in what is skipped', webm(Void(tracks(track('A_PCM/INT/LIT'))), ...plain), undefined],
    ['with tracks in an index', webm(element('114d9b74', Void(tracks())), ...plain), undefined],
    ['with something else in an index', webm(element('114d9b74', tracks()), ...plain), undefined],
    ['with something behind its segment', Buffer.concat([webm(...plain), head(), segment(plain)]), undefined],
    ['with a segment in it', webm(...plain, segment([cluster(0, second)])), undefined],
    ['of a segment that says less', Buffer.concat([head(), segment(plain, 100)]), undefined],
    ['of another type', Buffer.concat([head('mp3'), segment(plain)]), undefined],
    ['of ticks that no number holds', webm(scaled(200), tracks(), cluster(0, times(50, block(0)))), undefined],
    ['of ticks of any length', webm(scaled(8), tracks(), cluster(0, times(50, block(0)))), 1],
    ['of no elements', Buffer.concat([webm(...plain), Buffer.alloc(9)]), undefined],
    ['of a size that is unknown elsewhere', webm(...plain, element('ec', Buffer.alloc(9), 'unknown')), undefined],
    ['of no clusters', webm(tracks()), undefined],
  ]
  for (const [says, file, seconds] of rows) {
    const length = lengthOf(file)
    t.equal(length && near(length.seconds), seconds && near(seconds), says)
    if (length) t.equal(length.counted, true, says)
  }
})

t.test('nothing between blocks makes WebM shorter than its packets, in whatever pieces it comes', async t => {
  const junk = fc.uint8Array({ maxLength: 40 }).map(bytes => Void(Buffer.from(bytes)))
  const blocks = fc
    .tuple(fc.integer({ min: -9, max: 9 }), fc.nat({ max: 255 }))
    .map(([at, first]) => block(at, packet(first, 2)))
  const clusters = fc.tuple(fc.nat({ max: 999 }), fc.array(fc.oneof(blocks, junk), { maxLength: 9 }), fc.boolean())
  fc.assert(
    fc.property(fc.array(clusters, { maxLength: 5 }), fc.integer({ min: 1, max: 70 }), (of, size) => {
      const parts = of.map(([time, all, isLive]) => cluster(time, all, isLive ? 'unknown' : undefined))
      const file = webm(tracks(), cluster(0, [block(0)]), ...parts)
      const pieces = Array.from({ length: Math.ceil(file.length / size) }, (_, at) =>
        file.subarray(size * at, size * (at + 1)),
      )
      const length = lengthOf(...pieces)
      t.strictSame(length, lengthOf(file))
      const packets = of.flatMap(([, all]) => all).filter(one => one[0] === 0xa3)
      // The same packets in Ogg.
      const played = ogg(1, [
        Buffer.from('OpusHead'),
        Buffer.alloc(9),
        packet(),
        ...packets.map(one => one.subarray(-2)),
      ])
      return length !== undefined && length.seconds >= lengthOf(played)!.seconds - 1e-9
    }),
    { numRuns: runs(200) },
  )
})

const box = (name: string, ...data: Buffer[]) => {
  const all = Buffer.concat(data)
  return Buffer.concat([u32(all.length + 8), Buffer.from(name), all])
}
const full = (name: string, flags: number, ...values: number[]) => box(name, u32(flags), ...values.map(u32))
const type = box('ftyp', Buffer.from('isom\0\0\0\0'))
/** Tracks of 48,000 ticks a second, a sample of which has 1,024 where nothing else is said. */
const movie = (ids: readonly number[], seconds = 0, more: Buffer[] = []) =>
  box(
    'moov',
    full('mvhd', 0, 0, 0, 1000, seconds * 1000, 0, 0),
    ...ids.map(id => box('trak', full('tkhd', 0, 0, 0, id, 0, 0), box('mdia', full('mdhd', 0, 0, 0, 48_000, 0, 0, 0)))),
    box('mvex', ...ids.map(id => full('trex', 0, id, 1, 1024, 0, 0))),
    ...more,
  )
const fragment = (id: number, ...runs: Buffer[]) => box('moof', box('traf', full('tfhd', 0x2_0000, id), ...runs))
const data = box('mdat', Buffer.alloc(20))

t.test('an MP4 file of fragments is as long as the samples of its longest track', async t => {
  const usual = full('trun', 0x201, 75, 0, ...times(75, 100))
  const said = full('trun', 0x301, 3, 0, 48_000, 9, 24_000, 9, 24_000, 9)
  const first = full('trun', 0x105, 1, 0, 7, 96_000)
  const own = box('moof', box('traf', full('tfhd', 0x2_000b, 1, 0, 0, 1, 4800), full('trun', 0, 10)))
  const rows: [says: string, parts: Buffer[], seconds: number | undefined][] = [
    ['usual samples', [movie([1]), fragment(1, usual), data, fragment(1, usual), data], 3.2],
    ['samples that say their length', [movie([1]), fragment(1, said, first), data], 4],
    ['fragments that say the usual length', [movie([1]), own, data], 1],
    ['two tracks', [movie([1, 2]), fragment(1, usual), fragment(2, said, said), data], 4],
    ['a movie that says the length of its fragments', [movie([1], 5), fragment(1, usual), data], 5],
    ['samples without a length', [movie([1]), fragment(1, full('trun', 0x100, 300, ...times(300, 0)))], 3.2],
    ['data that go to the end', [movie([1]), fragment(1, said), Buffer.from('\0\0\0\0mdat')], 2],
    ['data that are cut', [movie([1]), fragment(1, said), data.subarray(0, 12)], 2],
    ['fragments of no track', [movie([1]), fragment(2, said), data], undefined],
    ['samples of no track', [movie([1]), box('moof', said), data], undefined],
    ['samples that are cut', [movie([1]), fragment(1, full('trun', 0x100, 9, 1))], undefined],
    ['a fragment that is cut', [movie([1]), fragment(1, said).subarray(0, -4)], undefined],
    ['a fragment before the movie', [fragment(1, said), movie([1]), fragment(1, said)], undefined],
    ['fragments in another box', [movie([1]), fragment(1, said), box('udta', fragment(1, usual))], undefined],
    [
      'fragments in another box before the movie',
      [box('udta', fragment(1, usual)), movie([1]), fragment(1, said)],
      undefined,
    ],
    ['samples in the movie', [movie([1], 0, [usual]), fragment(1, said)], undefined],
    ['two movies', [movie([1]), movie([1]), fragment(1, said)], undefined],
    ['no fragments', [movie([1])], undefined],
  ]
  for (const [says, parts, seconds] of rows) {
    const length = lengthOf(type, ...parts)
    t.equal(length && near(length.seconds), seconds && near(seconds), says)
    if (length) t.equal(length.counted, false, says)
  }
})

/** A page of Ogg with its position. */
const ogg = (serial: number, packets: readonly Buffer[], position = 0n) => {
  const pageHead = Buffer.alloc(27)
  pageHead.write('OggS')
  pageHead.writeBigInt64LE(position, 6)
  pageHead.writeUInt32LE(serial, 14)
  pageHead[26] = packets.length
  return Buffer.concat([pageHead, Buffer.from(packets.map(one => one.length)), ...packets])
}

t.test('Vorbis is as long as its pages say, within what its packets can play', async t => {
  const first = (rate: number) => {
    const bytes = Buffer.alloc(30)
    bytes.write('\x01vorbis', 'latin1')
    bytes.writeUInt32LE(rate, 12)
    // Blocks of 256 and 2,048 samples.
    bytes[28] = 0xb8
    return bytes
  }
  const file = (position: bigint, rate = 32_000, serial = 1) => [
    ogg(serial, [first(rate)]),
    ogg(serial, [Buffer.from('\x03vorbis'), Buffer.from('\x05vorbis')]),
    ogg(serial, times(100, Buffer.alloc(9)), position / 2n),
    ogg(serial, times(25, Buffer.alloc(9)), position),
    ogg(serial, [], -1n),
  ]
  const rows: [says: string, pieces: Buffer[], seconds: number | undefined][] = [
    ['a file', file(64_000n), 2],
    ['that says more than it can hold', file(6_400_000n), 4],
    ['that says little', file(1n), 1],
    ['of one file after another', [...file(64_000n), ...file(96_000n, 32_000, 2)], 5],
    ['of no samples a second', file(64_000n, 0), undefined],
    ['whose head is cut', [ogg(1, [first(32_000).subarray(0, 20)])], undefined],
  ]
  for (const [says, pieces, seconds] of rows) {
    const length = lengthOf(...pieces)
    t.equal(length && near(length.seconds), seconds && near(seconds), says)
    if (length) t.equal(length.counted, false, says)
  }
})

t.test('elements, bytes and samples take steps', async t => {
  const most = 10_000
  const rows: [says: string, file: Buffer, least: number][] = [
    ['elements', webm(tracks(), cluster(0, [block(0), ...times(1000, Void(Buffer.alloc(0)))])), 750],
    ['bytes', webm(tracks(), cluster(0, [block(0), Void(Buffer.alloc(1_000_000, 0x1f))])), 3900],
    ['samples', Buffer.concat([type, movie([1]), fragment(1, full('trun', 0x100, 8000, ...times(8000, 1)))]), 2000],
  ]
  for (const [says, file, least] of rows) {
    const budget = { steps: most }
    t.ok(audioLength({ pieces: [file], size: file.length }, budget), says)
    t.ok(most - budget.steps >= least, `${says}: ${most - budget.steps}`)
    t.equal(audioLength({ pieces: [file], size: file.length }, { steps: least - 1 }), undefined, says)
  }
})
