/** Reads UTF-8 as text, fast for large texts beyond ASCII too. */
import { isAscii, transcode } from 'node:buffer'

/** Size from which the second way is faster, in bytes. */
const LARGE_BYTES = 64 * 1024

/**
 * As `bytes.toString('utf8', start, end)`, for bytes that are valid UTF-8. V8 decodes text beyond ASCII at 0.1 GB/s;
 * by way of UTF-16 it is four times as fast, and holds twice the size for that moment.
 */
export function utf8Text(bytes: Buffer, start = 0, end = bytes.length): string {
  if (end - start < LARGE_BYTES) return bytes.toString('utf8', start, end)
  const part = bytes.subarray(start, end)
  return isAscii(part) ? part.toString('latin1') : transcode(part, 'utf8', 'utf16le').toString('utf16le')
}
