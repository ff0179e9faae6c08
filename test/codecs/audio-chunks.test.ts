/** Chunks of WAV files before their samples (docs/contract.md#length-of-audio). */
import t from 'tap'
import { audioLength } from '../../src/lib/audio-seconds.ts'
import { wavHead } from '../../src/lib/wav.ts'
import { lengthOf, near, noise, times } from './audio-pieces.ts'

const chunk = (name: string, data: Buffer) => {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(data.length)
  return Buffer.concat([Buffer.from(name), length, data, Buffer.alloc(data.length % 2)])
}

t.test('chunks before the samples may be of any size', async t => {
  const data = Buffer.alloc(96_000)
  const head = wavHead(48_000, data.length)
  const rows: [says: string, chunks: Buffer[]][] = [
    ['history', [chunk('bext', Buffer.alloc(5001, 'A=PCM,F=48000')), chunk('iXML', Buffer.alloc(9000, '<x/>'))]],
    ['a picture', [chunk('LIST', noise(900_000))]],
    ['many of them', times(1000, chunk('cue ', Buffer.alloc(3)))],
  ]
  for (const [says, chunks] of rows) {
    const pieces = [head.subarray(0, 36), ...chunks, chunk('data', data), chunk('LIST', Buffer.alloc(9))]
    t.equal(near(lengthOf(...pieces)!.seconds), near((96_000 + 18) / 96_000), says)
  }
  const pieces = [head.subarray(0, 36), ...times(2000, chunk('cue ', Buffer.alloc(3))), chunk('data', data)]
  const file = { pieces, size: Buffer.concat(pieces).length }
  t.equal(audioLength(file, { steps: 1500 }), undefined, 'no more of them than steps')
})
