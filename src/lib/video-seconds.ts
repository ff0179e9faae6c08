/** The length of a video in an ISO base media file (ISO 14496-12 sections 8.2.2 and 8.4.2), such as MP4 and QuickTime. */

/** Boxes that say how long the video, or one of its tracks, is. */
const HEADS = ['mvhd', 'mdhd']
const MAX_PLACES = 256

/** True for a file that begins with the type of such a file. */
export const isVideo = (head: Buffer): boolean => head.toString('latin1', 4, 8) === 'ftyp'

/** Seconds of what lasts longest; 0 where nothing says it. */
export function videoSeconds(bytes: Buffer): number {
  let most = 0
  for (const head of HEADS) {
    let at = bytes.indexOf(head)
    for (let places = 0; at >= 0 && places < MAX_PLACES; places++) {
      most = Math.max(most, secondsAt(bytes, at + head.length))
      at = bytes.indexOf(head, at + head.length)
    }
  }
  return most
}

/** Behind the name of a box: its version, flags and two times, and then what is read here. */
function secondsAt(bytes: Buffer, at: number): number {
  if (at + 32 > bytes.length) return 0
  const isLong = bytes[at] === 1
  const from = at + (isLong ? 20 : 12)
  const scale = bytes.readUInt32BE(from)
  const length = isLong ? Number(bytes.readBigUInt64BE(from + 4)) : bytes.readUInt32BE(from + 4)
  // All ones stand for an unknown length.
  const isKnown = scale > 0 && length < (isLong ? 2 ** 63 : 2 ** 32 - 1)
  return isKnown ? length / scale : 0
}
