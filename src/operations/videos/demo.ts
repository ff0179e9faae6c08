/** Videos of the simulated provider: the third poll finds the film, which has one frame. */
import { SimulatedError, type Simulation } from '../../core/operation.ts'
import { film } from './film.ts'

const POLLS = 3
/** Remembered jobs; the oldest are dropped. */
const MOST = 10_000

interface Made {
  polls: number
  readonly seconds: number
  readonly model: string
}
const made = new Map<string, Made>()
let count = 0

const shown = (id: string, { polls, model, seconds }: Made): object => ({
  id,
  object: 'video',
  model,
  status: polls >= POLLS ? 'completed' : polls > 0 ? 'in_progress' : 'queued',
  progress: Math.min(100, Math.round((polls * 100) / POLLS)),
  seconds: String(seconds),
  error: null,
})

function find(id: string | undefined): Made {
  const job = made.get(id ?? '')
  if (!job) throw new SimulatedError('the demo has no such video', 'id', 'not_found')
  return job
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
    const job = { polls: 0, seconds: Number(field('seconds') ?? 4), model: field('model') ?? 'demo-video' }
    const id = `demo_${Date.now().toString(36)}_${++count}`
    made.set(id, job)
    const [oldest] = made.keys()
    if (made.size > MOST && oldest !== undefined) made.delete(oldest)
    return { json: shown(id, job) }
  },
  '/videos/{id}'({ method, params: { id } }) {
    const job = find(id)
    if (method === 'DELETE') {
      made.delete(id!)
      return { json: { id, object: 'video.deleted', deleted: true } }
    }
    job.polls++
    return { json: shown(id!, job) }
  },
  '/videos/{id}/content': ({ params: { id } }) => ({ contentType: 'video/mp4', chunks: [film(find(id).seconds)] }),
}
