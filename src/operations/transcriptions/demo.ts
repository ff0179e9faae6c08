/** The simulated provider's transcript, in OpenAI's form: it says how large the file is. */
import type { SimulatedRequest, Simulation } from '../../core/operation.ts'

const BYTES_PER_SECOND = 8000

function transcribe({ body }: SimulatedRequest): object {
  const duration = Math.round((body.length / BYTES_PER_SECOND) * 1000) / 1000
  const text = `This is a simulated transcript of ${body.length} bytes.`
  return {
    task: 'transcribe',
    text,
    language: 'english',
    duration,
    segments: [{ id: 0, start: 0, end: duration, text }],
  }
}
const simulate: Simulation = request => ({ json: transcribe(request) })

/** The paths of OpenAI's audio API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/audio/transcriptions': simulate,
  '/audio/translations': simulate,
}
