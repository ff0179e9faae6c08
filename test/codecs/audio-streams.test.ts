/** Streams of other kinds within audio, which decoders play in its place (docs/contract.md#length-of-audio). */
import t from 'tap'
import { audioLength } from '../../src/lib/audio-seconds.ts'
import { wavHead } from '../../src/lib/wav.ts'
import { adts, largest, lengthOf, near, noise, numbers, slow, tag, times, usual } from './audio-pieces.ts'

const join = (...pieces: Buffer[]) => Buffer.concat(pieces)
const hex = (digits: string) => Buffer.from(digits, 'hex')
/** A frame of `bytes` that begins with `head`; no byte of the rest begins anything. */
const frame = (head: string, bytes: number) => join(hex(head), Buffer.alloc(bytes - head.length / 2, 0x22))
const loas = frame('56e011', 20)
const ac3 = frame('0b77ffff0040', 128)
const eac3 = frame('0b7700130081', 40)
const swapped = frame('770b13008100', 40)
const amr = frame('44100305', 6)
const transport = (bytes: number) => frame('47410011', bytes)
const pack = frame('000001ba4400', 14)
const packet = frame('000001c0000081', 15)
const mxf = hex('060e2b34020501010d010201')
const nut = hex('4e4d7a561f5f04ad')
const iec = frame('72f81f4e0100', 60)
const dts = frame('7ffe8001fc', 96)

/** Of bodies that hold `stream`, end to end but for the heads. */
const AROUND = {
  AAC: (stream: Buffer) => framed(stream, adts(8000), 7),
  MP2: (stream: Buffer) => framed(stream, largest, 4),
  MP3: (stream: Buffer) => framed(stream, Buffer.concat([hex('fffbe8c0'), Buffer.alloc(1436)]), 4),
}
function framed(stream: Buffer, around: Buffer, head: number): Buffer {
  const frames: Buffer[] = []
  for (let at = 0; at < stream.length || frames.length < 8; at += around.length - head) {
    const one = Buffer.from(around)
    stream.subarray(at, at + around.length - head).copy(one, head)
    frames.push(one)
  }
  return Buffer.concat(frames)
}

t.test('bodies of frames that hold another stream, which decoders play, are of unknown length', async t => {
  const rows: [says: string, stream: Buffer, within?: (keyof typeof AROUND)[]][] = [
    ['a pack of a programme stream', join(Buffer.alloc(300), pack)],
    ['packets of a programme stream', join(...times(13, packet))],
    ['a transport stream', join(...times(90, transport(188)))],
    ['one with times', join(...times(90, transport(192)))],
    ['one with checks', join(...times(90, transport(204)))],
    ['MXF', join(noise(500), mxf)],
    ['NUT', join(noise(500), nut)],
    ['LOAS', join(noise(100), ...times(70, loas), noise(9000))],
    ['E-AC-3', join(...times(100, eac3)), ['AAC', 'MP2']],
    ['E-AC-3 of swapped bytes', join(...times(100, swapped)), ['AAC', 'MP2']],
    ['AAC', join(...times(100, adts(14))), ['MP2', 'MP3']],
    ['MP3', join(...times(70, slow)), ['AAC']],
    ['DTS', join(...times(3, dts))],
    ['TrueHD', join(...times(3, hex('0000f8726fba')))],
    ['IEC 61937', join(...times(3, iec))],
    ['AMR', join(...times(130, amr))],
  ]
  for (const [says, stream, within = ['AAC', 'MP2', 'MP3'] as const] of rows) {
    for (const name of within) {
      const file = AROUND[name](stream)
      t.equal(lengthOf(file), undefined, `${says} in ${name}`)
      if (!/E-?AC|AC-3|LOAS|AMR|AAC|MP3/.test(says))
        t.equal(lengthOf(tag(90_000), file), undefined, `${says} behind a tag`)
      t.ok(lengthOf(AROUND[name](noise(stream.length))), `noise in ${name}`)
    }
  }
  const gsm = AROUND.AAC(Buffer.alloc(0))
  for (let at = 33; at < gsm.length; at += 33) if (at % 8000 > 6) gsm[at] = 0xd1
  t.equal(lengthOf(gsm.subarray(0, 8000 * 4)), undefined, 'GSM')
  const boxed = join(hex('fff15083'), Buffer.from('moov'), Buffer.alloc(((3 << 11) | (0x6d << 3) | 3) - 8))
  t.equal(lengthOf(...times(9, boxed)), undefined, 'MP4, the size of whose first box is the head of a frame')
})

t.test('what decoders do not prefer to frames takes nothing from their length', async t => {
  const streams: [says: string, stream: Buffer][] = [
    ['Ogg', Buffer.from('OggS')],
    ['Matroska', hex('1a45dfa3')],
    ['FLAC', Buffer.from('fLaC')],
    ['WAV', Buffer.from('RIFF....WAVEfmt ')],
    ['MP4 somewhat later', Buffer.from('....moov')],
    ['a tag', tag(9)],
    ['few frames of LOAS', join(...times(60, loas))],
    ['few packets of a transport stream', join(...times(5, transport(188)))],
    ['few packets of a programme stream', join(...times(12, packet))],
    ['a mark that stands there twice', join(dts, dts)],
    ['AMR of one byte', Buffer.alloc(7000, 0xa5)],
  ]
  for (const [says, stream] of streams) {
    for (const [name, around] of Object.entries(AROUND)) {
      const file = around(join(Buffer.alloc(9), stream))
      t.equal(
        near(lengthOf(file)!.seconds),
        near(lengthOf(around(noise(file.length - 200)))!.seconds),
        `${says} in ${name}`,
      )
    }
  }
  const late = join(...times(80, usual), AROUND.MP3(join(...times(3, pack))))
  t.ok(lengthOf(late), 'what begins where frames are proven')
  t.equal(lengthOf(tag(200_000), late), undefined, 'the same, where decoders look at a tag before it')
  t.ok(lengthOf(tag(1_200_000), ...times(80, usual)), 'a tag that is longer than what they look at')
  t.equal(lengthOf(tag(9), tag(9), AROUND.MP3(join(noise(100_000), pack))), undefined, 'behind two tags')
})

/** Samples of 16 bits at 48,000 a second, or as `change` says. */
const wav = (data: Buffer, change: (head: Buffer) => void = () => undefined) => {
  const head = wavHead(48_000, data.length)
  change(head)
  return join(head, data)
}
const chunk = (name: string, data: Buffer) => {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(data.length)
  return join(Buffer.from(name), length, data, Buffer.alloc(data.length % 2))
}

t.test('samples of 16 bits that hold frames of a codec, which decoders play, are of unknown length', async t => {
  const silence = Buffer.alloc(16_384)
  const wide = (head: Buffer) => head.writeUInt16LE(24, 34)
  const stereo = (head: Buffer) => head.writeUInt16LE(2, 22)
  const rows: [says: string, file: Buffer, isKnown: boolean][] = [
    ['LOAS', wav(join(...times(3, loas), noise(100))), false],
    ['LOAS of two frames', wav(join(...times(2, loas), noise(100))), true],
    ['LOAS later', wav(join(noise(9000), ...times(64, loas), noise(100))), false],
    ['LOAS in other samples', wav(join(noise(90_000), ...times(64, loas), noise(100)), wide), true],
    ['AC-3', wav(join(...times(3, ac3), noise(100))), false],
    ['E-AC-3', wav(join(...times(3, eac3), noise(100))), false],
    ['E-AC-3 of swapped bytes', wav(join(...times(3, swapped), noise(100))), false],
    ['MP3 behind zeros', wav(join(silence, ...times(6, slow), noise(100))), false],
    ['AAC later', wav(join(noise(5000), ...times(64, adts(371)))), false],
    ['DTS', wav(join(...times(3, dts), noise(100))), false],
    ['IEC 61937 in samples of 24 bits', wav(join(...times(3, iec), noise(100)), wide), false],
    ['NUT before the data', join(wav(silence).subarray(0, 36), chunk('junk', nut), chunk('data', silence)), false],
    ['LOAS in other data', join(wav(Buffer.alloc(300_000)), chunk('data', join(...times(3, loas)))), false],
    ['LOAS where no packet of samples is', wav(join(noise(340_000), ...times(64, loas))), true],
    ['LOAS where packets of more samples are', wav(join(noise(400_000), ...times(64, loas)), stereo), false],
    ['ACT', wav(join(Buffer.alloc(212), hex('84'), Buffer.alloc(255), noise(900))), false],
    ['a programme stream', wav(join(...times(20, pack), ...times(20, packet))), true],
    ['a transport stream', wav(join(...times(90, transport(188)))), true],
    ['nothing but samples', wav(noise(300_000)), true],
  ]
  for (const [says, file, isKnown] of rows) t.equal(lengthOf(file) !== undefined, isKnown, says)
})

t.test('streams are looked for in as many steps as there are bytes that may begin one', async t => {
  const random = numbers()
  const quiet = Buffer.from(
    Array.from({ length: 32_000 }, (_, at) => (at % 2 ? 255 * Math.round(random()) : random() * 9)),
  )
  for (const [says, data, least, most] of [
    ['silence', Buffer.alloc(256 * 1024), 8192, 9000],
    ['quiet samples', join(...times(8, quiet)), 16_000, 42_000],
    ['bytes that may begin a frame', Buffer.alloc(256 * 1024, 0xff), 40_000, 43_000],
  ] as const) {
    const file = wav(data)
    const budget = { steps: 1_000_000 }
    audioLength({ pieces: [file], size: file.length }, budget)
    const steps = 1_000_000 - budget.steps
    t.ok(steps >= least && steps <= most, `${says}: ${steps}`)
  }
})
