/** Shared by the wires of jobs: the names of job states, and the decoder of the response to a create. */
import {
  type Decoder,
  isObject,
  type JobReport,
  type Json,
  jsonIn,
  objectIn,
  pathSegment,
  type Target,
  textIn,
} from '../../src/plugin.ts'
import { errorIn, parsed, WholeDecoder } from './answer.ts'

type State = NonNullable<JobReport['state']>

/** Words are compared without case, `-` and `_`. */
const STATES: Readonly<Record<State, readonly string[]>> = {
  queued: ['queued', 'pending', 'throttled', 'submitted', 'starting', 'inqueue', 'created', 'preparing', 'queueing'],
  in_progress: ['inprogress', 'running', 'processing', 'dreaming'],
  completed: ['completed', 'succeeded', 'succeed', 'success', 'ready', 'done'],
  failed: ['failed', 'fail', 'error'],
  canceled: ['canceled', 'cancelled'],
  expired: ['expired'],
}
const words = new Map(
  Object.entries(STATES).flatMap(([state, all]) => all.map(word => [word, state as State] as const)),
)

const MAX_STATE_CHARACTERS = 64

/** Undefined for a word that is not known. */
export const jobState = (word: unknown): State | undefined =>
  typeof word === 'string' && word.length <= MAX_STATE_CHARACTERS
    ? words.get(word.toLowerCase().replace(/[-_ ]/g, ''))
    : undefined

/** Bounds the id that a provider gives a job: it stands in the address of every poll. */
const MAX_ID_CHARACTERS = 1024

/** Reads the answer to a create: the id of the job in the field `name`. */
export function jobDecoder(name: string, target: Target): Decoder {
  return new WholeDecoder(frame => {
    const answer = objectIn(parsed(frame))
    const id = textIn(answer[name])
    if (id === undefined || !isInPaths(id) || isObject(answer.error)) throw errorIn(answer, name, target)
    const state = jobState(answer.status) === 'in_progress' ? 'in_progress' : 'queued'
    const { progress } = answer
    return [{ type: 'job', upstreamId: id, state, ...(typeof progress === 'number' && { progress }) }]
  })
}

/** Whether polls can name it: it leads nowhere else, and is short enough. */
function isInPaths(id: string): boolean {
  try {
    return id.length <= MAX_ID_CHARACTERS && id.split('/').every(segment => pathSegment(segment) !== '')
  } catch {
    // A segment such as `..`.
    return false
  }
}

/** The answer to a poll, within the bounds of `JobForm.read`. Throws a GatewayError for what is no JSON object. */
export function stateAnswer(body: string, target: Target): Json {
  const answer = jsonIn(body)
  if (answer === undefined) throw errorIn(undefined, 'JSON', target)
  if (!isObject(answer)) throw errorIn(answer, 'state', target)
  return answer
}

/** Bounds what is read of a code or message; less is shown. */
const MAX_MESSAGE_CHARACTERS = 4000
const MODERATED = /content.?filter|content.?policy|moderat|safety|sensitive|prohibited|responsible.?ai|\brai\b/i

/** Reads the error of a failed job. A refusal of the content has the code `content_filter`. */
export function jobError(error: unknown): NonNullable<JobReport['error']> | undefined {
  if (!isObject(error)) return undefined
  const code =
    textIn(error.code)?.slice(0, MAX_MESSAGE_CHARACTERS) ?? (typeof error.code === 'number' ? String(error.code) : '')
  const message = textIn(error.message)?.slice(0, MAX_MESSAGE_CHARACTERS) ?? (code || 'The provider gave no reason.')
  return { code: MODERATED.test(`${code} ${message}`) ? 'content_filter' : code, message }
}
