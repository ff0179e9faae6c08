/** The simulated provider's images, in OpenAI's form: a pattern whose colours follow from what was asked for. */
import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import { type SimulatedAnswer, SimulatedError, type SimulatedRequest, type Simulation } from '../../core/operation.ts'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Eight bits that are an index into the palette; no interlacing. */
const INDEXED = [8, 3, 0, 0, 0]

/**
 * Writes a PNG file (ISO/IEC 15948), with the same bytes on every machine. `rows` hold indexes into `palette`, whose
 * colours are red, green and blue.
 */
function png(rows: readonly (readonly number[])[], palette: readonly Uint8Array[]): Buffer {
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

/** Squares of a side, and pixels of a square's. */
const CELLS = 8
const CELL_PX = 8
const SIDE_PX = CELLS * CELL_PX
const MAX_IMAGES = 10
const MAX_PREVIEWS = 3

type Fields = Readonly<Record<string, unknown>>

/** The paths of OpenAI's images API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/images/generations': ({ json }) => answer(json as Fields, '', 'image_generation'),
  '/images/edits': request => {
    const { fields, files } = partsOf(request)
    return answer(fields, files, 'image_edit')
  },
}

function answer(fields: Fields, seed: string, kind: string): SimulatedAnswer {
  const wanted = countIn(fields, 'n', 1, MAX_IMAGES)
  const previewed = countIn(fields, 'partial_images', 0, MAX_PREVIEWS)
  const prompt = String(fields.prompt)
  const images = Array.from({ length: wanted }, (_, index) => image(`${index} ${prompt} ${seed}`))
  const about = { background: 'opaque', output_format: 'png', quality: 'low', size: `${SIDE_PX}x${SIDE_PX}` }
  const tokens = Math.ceil(prompt.length / 4)
  const usage = {
    input_tokens: tokens,
    input_tokens_details: { text_tokens: tokens, image_tokens: 0 },
    output_tokens: SIDE_PX * wanted,
    total_tokens: tokens + SIDE_PX * wanted,
  }
  if (String(fields.stream) !== 'true') {
    return { json: { data: images.map(b64_json => ({ b64_json })), ...about, usage } }
  }
  const event = (name: string, more: object) => {
    const type = `${kind}.${name}`
    return `event: ${type}\ndata: ${JSON.stringify({ type, ...about, ...more })}\n\n`
  }
  const previews = Array.from({ length: previewed }, (_, index) =>
    event('partial_image', { b64_json: image(`preview ${index}`), partial_image_index: index }),
  )
  const last = images.length - 1
  const whole = images.map((b64_json, at) => event('completed', { b64_json, ...(at === last && { usage }) }))
  return { contentType: 'text/event-stream', chunks: [...previews, ...whole] }
}

function countIn(fields: Fields, name: string, least: number, most: number): number {
  const count = Number(fields[name] ?? least)
  if (count >= least && count <= most) return count
  throw new SimulatedError(`${name}: from ${least} to ${most}, got ${fields[name]}`, name)
}

/** Draws an image that mirrors at its middle. */
function image(seed: string): string {
  const hash = createHash('sha256').update(seed).digest()
  const palette = [hash.subarray(0, 3), hash.subarray(3, 6), hash.subarray(6, 9), Buffer.from([255, 255, 255])]
  const colourAt = (x: number, y: number) => {
    const column = Math.min(x, CELLS - 1 - x)
    return hash[9 + ((y * (CELLS / 2) + column) % 23)]! % palette.length
  }
  const rows = Array.from({ length: SIDE_PX }, (_, y) =>
    Array.from({ length: SIDE_PX }, (_, x) => colourAt(Math.floor(x / CELL_PX), Math.floor(y / CELL_PX))),
  )
  return png(rows, palette).toString('base64')
}

/** Texts by name, and a hash of all files: as the wire writes a form, so that nothing but that need be read. */
function partsOf({ body, contentType }: SimulatedRequest): { fields: Fields; files: string } {
  const boundary = `--${/boundary=([^;]+)/.exec(contentType)?.[1] ?? ''}`
  const fields: Record<string, unknown> = {}
  const files = createHash('sha256')
  for (const part of body.toString('latin1').split(`${boundary}\r\n`).slice(1)) {
    const [head = '', ...content] = part.split('\r\n\r\n')
    const text = content.join('\r\n\r\n').split(`\r\n${boundary}`)[0]!.replace(/\r\n$/, '')
    const name = /name="([^"]*)"/.exec(head)?.[1] ?? ''
    if (head.includes('filename=')) files.update(text, 'latin1')
    else fields[name] = Buffer.from(text, 'latin1').toString('utf8')
  }
  return { fields, files: files.digest('base64') }
}
