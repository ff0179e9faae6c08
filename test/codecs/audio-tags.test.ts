/** Tags between frames of MP3 and AAC, as joined files have them (docs/contract.md#length-of-audio). */
import fc from 'fast-check'
import t from 'tap'
import { frameOf } from '../../src/lib/audio-frame.ts'
import { audioLength } from '../../src/lib/audio-seconds.ts'
import { runs } from '../helpers/runs.ts'
import { adts, apeTag, lengthOf, mpeg, near, noise, oldTag, slow, tag, tagOf, times, usual } from './audio-pieces.ts'

t.test('tags between frames take no time, what is in them does', async t => {
  const of = times
  const rows: [says: string, pieces: Buffer[], seconds: number | undefined][] = [
    ['MP3 with a tag behind it', [...of(100, slow), oldTag()], 7.2],
    [
      'MP3 with tags in between',
      [...of(100, slow), oldTag(), tag(3000), tag(9, 0x10), ...of(100, slow), oldTag()],
      14.4,
    ],
    ['MP3 with older tags in between', [...of(100, slow), apeTag(200), oldTag(), ...of(100, slow)], 14.4],
    ['MP3 with a tag of no genre in between', [usual, oldTag(0xff), usual], (2 * 1152) / 44_100],
    ['AAC with a tag in an old one', [adts(371), oldTag(0, tag(900).subarray(0, 20)), adts(371)], undefined],
    ['MP3 with a picture in between', [...of(100, slow), tagOf(noise(60_000)), ...of(100, slow)], 14.4],
    ['MP3 with a tag that goes beyond its end', [...of(100, slow), tag(3000).subarray(0, 1000)], 8.2],
    ['the same before more frames', [...of(100, slow), tag(15_000).subarray(0, 100), ...of(100, slow)], 7.2 + 7.3],
    ['MP3 with what is no tag', [...of(100, slow), Buffer.from('ID3\x04\0\0\0\0\x80\x05', 'latin1')], 7.21],
    [
      'MP3 that goes on behind what is no tag',
      [...of(100, slow), Buffer.from('ID3\x04\0\0\0\0\x80\x05', 'latin1'), ...of(2, slow)],
      undefined,
    ],
    [
      'MP3 with frames in a tag',
      [...of(10, slow), tagOf(...of(10, slow), Buffer.alloc(9)), ...of(10, slow)],
      30 * 0.072,
    ],
    ['MP3 with other frames in a tag', [...of(10, slow), tagOf(usual, usual), ...of(10, slow)], 1.44 + 2304 / 44_100],
    ['MP3 with frames in an old tag', [...of(10, slow), oldTag(0, slow), ...of(10, slow)], 21 * 0.072],
    [
      'MP3 with a frame that begins in a tag',
      [...of(10, slow), tagOf(Buffer.alloc(9), usual.subarray(0, 99)), ...of(10, slow)],
      undefined,
    ],
    [
      'a frame the head of which begins in a tag',
      [...of(10, usual), oldTag(0xff), Buffer.from([0xe3, 0x18, 0xc0]), Buffer.alloc(99)],
      undefined,
    ],
    [
      'MP3 with a tag in an old one',
      [...of(10, slow), oldTag(0, tag(900).subarray(0, 20)), ...of(100, slow)],
      undefined,
    ],
    ['MP3 with a tag in another one', [...of(10, slow), tagOf(tag(900).subarray(0, 20)), ...of(100, slow)], 7.92],
    ['AAC in segments that begin with tags', of(5, [tag(63), ...of(10, adts(371))]).flat(), (50 * 1024) / 44_100],
  ]
  for (const [says, pieces, seconds] of rows) {
    const length = lengthOf(...pieces)
    t.equal(length && near(length.seconds), seconds && near(seconds), says)
  }
})

/** Seconds that a decoder plays that takes each head for one of a frame, and steps over tags of ID3v2 or not. */
function played(file: Buffer, stepsOver: boolean): number {
  let seconds = 0
  for (let at = 0; at + 7 <= file.length; ) {
    const size = file.subarray(at + 6, at + 10)
    if (stepsOver && file.toString('latin1', at, at + 3) === 'ID3' && size.every(byte => byte < 128)) {
      at += 10 + size.reduce((sum, byte) => sum * 128 + byte, 0)
      continue
    }
    const frame = frameOf(file.readUInt32BE(at), file.readUIntBE(at + 4, 3))
    // One that is cut at the end may sound, or not.
    if (frame && at + frame.bytes <= file.length) seconds += frame.samples / frame.rate
    at += frame?.bytes ?? 1
  }
  return seconds
}

t.test('no tag makes a file shorter than what decoders play that do not step over it', async t => {
  /** Of 72 ms as well; in its body slow ones of its mark may follow one another. */
  const large = mpeg(0xffe3_b8c0, 1008)
  const bytes = fc.oneof(
    fc.constantFrom(slow, usual, slow.subarray(0, 4), tag(20), tag(100).subarray(0, 10), large.subarray(0, 30)),
    fc.uint8Array({ maxLength: 80 }).map(Buffer.from),
  )
  const body = fc.array(bytes, { maxLength: 4 }).map(pieces => Buffer.concat(pieces))
  const hiding = fc.nat({ max: 71 }).map(from => {
    const frame = Buffer.from(large)
    for (let at = 7 + from; at + 4 <= frame.length; at += 72) slow.copy(frame, at, 0, 4)
    return frame
  })
  const piece = fc.oneof(
    { weight: 3, arbitrary: hiding },
    fc.constant(slow),
    { weight: 3, arbitrary: body.map(inside => tagOf(inside)) },
    body.map(inside => oldTag(0, inside.subarray(0, 124))),
    body.map(inside => apeTag(0, inside)),
    body,
  )
  let counted = 0
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
      const file = Buffer.concat([large, ...pieces])
      const length = lengthOf(file)
      if (!length) return true
      counted++
      return [true, false].every(stepsOver => length.seconds >= played(file, stepsOver) - 1e-6)
    }),
    { numRuns: runs(5000) },
  )
  t.ok(counted > 0)
})

t.test('tags between frames take steps as they are long', async t => {
  const stepsOf = (picture: Buffer) => {
    const pieces = [...times(7, slow), tagOf(picture), slow]
    const budget = { steps: 1_000_000 }
    audioLength({ pieces, size: Buffer.concat(pieces).length }, budget)
    return 1_000_000 - budget.steps
  }
  for (const [says, picture, least, most] of [
    ['zeros', Buffer.alloc(64_000), 1000, 1200],
    ['a picture', noise(64_000), 1000, 5000],
    ['bytes that may begin frames', Buffer.alloc(64_000, 0xff), 64_000, 66_000],
  ] as const) {
    const steps = stepsOf(picture)
    t.ok(steps >= least && steps <= most, `${says}: ${steps}`)
  }
  const pieces = [...times(7, slow), tagOf(Buffer.alloc(50_000, 0xff)), ...times(100, slow)]
  const file = { pieces, size: Buffer.concat(pieces).length }
  t.ok(audioLength(file, { steps: 10_000 })!.seconds > 40, 'what is not looked at counts as the slowest frames would')
})
