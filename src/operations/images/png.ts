/** Writes PNG files (ISO/IEC 15948) of a few colours. */
import { crc32, deflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Eight bits that are an index into the palette; no interlacing. */
const INDEXED = [8, 3, 0, 0, 0]

/** `rows` hold indexes into `palette`, whose colours are red, green and blue. The same bytes on every machine. */
export function png(rows: readonly (readonly number[])[], palette: readonly Uint8Array[]): Buffer {
  const size = Buffer.alloc(8)
  size.writeUInt32BE(rows[0]!.length, 0)
  size.writeUInt32BE(rows.length, 4)
  // Each row stands behind its filter, which is none. Stored: how well zlib packs depends on its version.
  const pixels = deflateSync(Buffer.from(rows.flatMap(row => [0, ...row])), { level: 0 })
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', Buffer.concat([size, Buffer.from(INDEXED)])),
    chunk('PLTE', Buffer.concat(palette)),
    chunk('IDAT', pixels),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const content = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const out = Buffer.alloc(content.length + 8)
  out.writeUInt32BE(data.length, 0)
  content.copy(out, 4)
  out.writeUInt32BE(crc32(content), content.length + 4)
  return out
}
