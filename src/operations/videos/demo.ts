/** Videos of the simulated provider: they take two seconds, and have one frame. The id of a job holds all of its state. */
import { SimulatedError, type Simulation } from '../../core/operation.ts'
import { film } from './film.ts'

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
