/** Videos of the simulated provider: they take two seconds, and have one frame. The id of a job holds all of its state. */
import { SimulatedError, type Simulation } from '../../core/operation.ts'

const MAKING_MS = 2000
const MAX_SECONDS = 60

interface Made {
  /** Unix milliseconds; 0 for one that was made long ago. */
  readonly at: number
  readonly seconds: number
  readonly model: string
}

let count = 0
const idOf = ({ at, seconds, model }: Made): string =>
  `demo_${Buffer.from(JSON.stringify([at, seconds, model, ++count])).toString('base64url')}`

function find(id = ''): Made {
  try {
    const [at, seconds, model] = JSON.parse(Buffer.from(id.slice('demo_'.length), 'base64url').toString()) as never[]
    return { at: Number(at), seconds: Number(seconds), model: String(model) }
  } catch {
    throw new SimulatedError('the demo has no such video', 'id', 'not_found')
  }
}

function shown(id: string, { at, model, seconds }: Made): object {
  const share = Math.min(1, Math.max(0, (Date.now() - at) / MAKING_MS))
  return {
    id,
    object: 'video',
    model,
    status: share === 1 ? 'completed' : share > 0 ? 'in_progress' : 'queued',
    progress: Math.round(share * 100),
    seconds: String(seconds),
    error: null,
  }
}

/** The paths of OpenAI's videos API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/videos'({ body, json }) {
    const text = body.toString('latin1')
    const field = (name: string) => {
      const fields = json as Record<string, unknown> | undefined
      if (fields) return fields[name] === undefined ? undefined : String(fields[name])
      const [, part] = text.split(`name="${name}"`)
      return part?.split('\r\n\r\n')[1]?.split('\r\n')[0]
    }
    const seconds = Math.min(MAX_SECONDS, Number(field('seconds') ?? 4))
    const job = { at: Date.now(), seconds, model: field('model') ?? 'demo-video' }
    return { json: shown(idOf(job), job) }
  },
  '/videos/{id}'({ method, params: { id } }) {
    const job = find(id)
    if (method === 'DELETE') return { json: { id, object: 'video.deleted', deleted: true } }
    return { json: shown(id!, job) }
  },
  '/videos/{id}/content': ({ params: { id } }) => ({ contentType: 'video/mp4', chunks: [film(find(id).seconds)] }),
}

const SIDE_PX = 32
const BLOCKS = (SIDE_PX / 16) ** 2
const LUMA = 256
const SAMPLES = 384
const TIMESCALE = 1000

const hex = (text: string): Buffer => Buffer.from(text, 'hex')
/** Baseline profile, level 1; 32 by 32, no picture order, no cropping. */
const sps = hex('6742c00ada2590')
const pps = hex('68ce3c80')
/** Heads of IDR slices with ids 0 and 1, for two that follow each other (ITU-T H.264 section 7.4.3), and its first block. */
const SLICES = [hex('658884a0d0'), hex('6588822834')] as const
/** Begins a further I_PCM block. */
const BLOCK = hex('0d00')
/** Ends a slice. */
const STOP = hex('80')

/** Neither the luma of a frame nor its chroma has a run of zeros, which would need escaping. */
const LUMA_FIRST = 32
const LUMA_STEP = 16
const SHADES = 12
/** Returns the brightness of the frame at a second. */
export const lumaAt = (second: number): number => LUMA_FIRST + (second % SHADES) * LUMA_STEP

/** An IDR slice of I_PCM macroblocks. */
function frame(second: number): Buffer {
  const samples = Buffer.alloc(SAMPLES, 128).fill(lumaAt(second), 0, LUMA)
  const more = Array.from({ length: BLOCKS - 1 }, () => [BLOCK, samples]).flat()
  return Buffer.concat([SLICES[second % 2]!, samples, ...more, STOP])
}

const u16 = (...values: number[]): Buffer => Buffer.concat(values.map(value => Buffer.from([value >> 8, value & 255])))
function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, at * 4)
  return bytes
}
const box = (type: string, ...parts: Buffer[]): Buffer => {
  const content = Buffer.concat(parts)
  return Buffer.concat([u32(content.length + 8), Buffer.from(type, 'latin1'), content])
}
const full = (type: string, flags: number, ...parts: Buffer[]) => box(type, u32(flags), ...parts)
const MATRIX = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)

/** The bytes of a film of `seconds`. */
export function film(seconds: number): Buffer {
  const shades = Array.from({ length: SHADES }, (_, second) => {
    const sample = frame(second)
    return Buffer.concat([u32(sample.length), sample])
  })
  const samples = Array.from({ length: seconds }, (_, second) => shades[second % SHADES]!)
  const duration = seconds * TIMESCALE
  const ftyp = box('ftyp', Buffer.from('isom'), u32(512), Buffer.from('isomavc1mp41'))
  const mdat = box('mdat', ...samples)
  const avcC = box(
    'avcC',
    Buffer.from([1, 66, 0xc0, 10, 0xff, 0xe1]),
    ...[u16(sps.length), sps, Buffer.from([1]), u16(pps.length), pps],
  )
  const look = Buffer.concat([
    Buffer.alloc(16),
    u16(SIDE_PX, SIDE_PX),
    u32(0x480000, 0x480000, 0),
    u16(1),
    Buffer.alloc(32),
  ])
  const avc1 = box('avc1', Buffer.alloc(6), u16(1), look, u16(24, 0xffff), avcC)
  const stbl = box(
    'stbl',
    full('stsd', 0, u32(1), avc1),
    full('stts', 0, u32(1, seconds, TIMESCALE)),
    full('stsc', 0, u32(1, 1, seconds, 1)),
    full('stsz', 0, u32(0, seconds, ...samples.map(({ length }) => length))),
    full('stco', 0, u32(1, ftyp.length + 8)),
  )
  const dinf = box('dinf', full('dref', 0, u32(1), full('url ', 1)))
  const minf = box('minf', full('vmhd', 1, u16(0, 0, 0, 0)), dinf, stbl)
  const hdlr = full('hdlr', 0, u32(0), Buffer.from('vide'), Buffer.alloc(12), Buffer.from('film\0'))
  const mdia = box('mdia', full('mdhd', 0, u32(0, 0, TIMESCALE, duration), u16(0x55c4, 0)), hdlr, minf)
  const tkhd = full('tkhd', 3, u32(0, 0, 1, 0, duration, 0, 0, 0, 0), MATRIX, u32(SIDE_PX << 16, SIDE_PX << 16))
  const times = Buffer.concat([u32(0, 0, TIMESCALE, duration, 0x10000), u16(0x100, 0), u32(0, 0)])
  const mvhd = full('mvhd', 0, times, MATRIX, Buffer.alloc(24), u32(2))
  return Buffer.concat([ftyp, mdat, box('moov', mvhd, box('trak', tkhd, mdia))])
}
