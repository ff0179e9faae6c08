/** Size in bytes of the head of a mono WAV file of 16-bit samples (RIFF). */

const HEADER_BYTES = 44
const BYTES_PER_SAMPLE = 2
/** Both sizes while the length is unknown, as streaming encoders write them. */
const UNKNOWN = 0xffff_ffff

/** `bytes`: length of the samples that follow; undefined while unknown. */
export function wavHead(samplesPerSecond: number, bytes?: number): Buffer {
  const head = Buffer.alloc(HEADER_BYTES)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(bytes === undefined ? UNKNOWN : bytes + HEADER_BYTES - 8, 4)
  head.write('WAVEfmt ', 8, 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(samplesPerSecond, 24)
  head.writeUInt32LE(samplesPerSecond * BYTES_PER_SAMPLE, 28)
  head.writeUInt16LE(BYTES_PER_SAMPLE, 32)
  head.writeUInt16LE(BYTES_PER_SAMPLE * 8, 34)
  head.write('data', 36, 'latin1')
  head.writeUInt32LE(bytes ?? UNKNOWN, 40)
  return head
}
