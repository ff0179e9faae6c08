/** How long a packet of Opus lasts (RFC 6716 section 3.1). */

/** Milliseconds of a frame by its configuration: of SILK, of the hybrid of both, and of CELT. */
const SILK = [10, 20, 40, 60]
const HYBRID = [10, 20]
const CELT = [2.5, 5, 10, 20]
/** Of any packet, and of one that is lost, which some decoders fill. */
const LONGEST = 0.12
/** Bytes at the begin of a packet that say how long it lasts. */
export const PACKET_HEAD = 2

/** Seconds of the packet of `length` bytes at `at`; the longest there are where it is cut or empty. */
export function packetSeconds(bytes: Buffer, at: number, length: number): number {
  if (length === 0 || at >= bytes.length) return LONGEST
  const head = bytes[at]!
  const config = head >> 3
  const ms = config < 12 ? SILK[config % 4]! : config < 16 ? HYBRID[config % 2]! : CELT[config % 4]!
  const code = head & 3
  const frames = code === 0 ? 1 : code < 3 ? 2 : length < 2 ? 0 : bytes[at + 1]! & 63
  return Math.min((frames * ms) / 1000, LONGEST)
}
