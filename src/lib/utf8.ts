/** Reads UTF-8 as text, fast for large texts beyond ASCII too. */
import { isAscii, isUtf8, transcode } from 'node:buffer'

/** Size from which the second way is faster, in bytes. */
const LARGE_BYTES = 64 * 1024

/**
 * Decodes as `bytes.toString('utf8', start, end)` does. V8 decodes text beyond ASCII at 0.1 GB/s. The way by UTF-16 is
 * four times as fast, and holds twice the size for that moment.
 */
export function utf8Text(bytes: Buffer, start = 0, end = bytes.length): string {
  if (end - start < LARGE_BYTES) return bytes.toString('utf8', start, end)
  const part = bytes.subarray(start, end)
  if (isAscii(part)) return part.toString('latin1')
  return isUtf8(part) ? transcode(part, 'utf8', 'utf16le').toString('utf16le') : part.toString('utf8')
}
