/** The ways in which a provider fails, before and after content: between providers of one model, and between models. */
import type { Step } from '../helpers/upstream.ts'

/** Names an attempt of `metadata.routing`: the upstream's status, 0 when there was none, and the kind. */
export type Verdict = [status: number, kind: 'network_error' | 'rate_limited' | 'timeout' | 'upstream_error']

export const refused = 'refused'
/** A token each, as the gateway estimates: four characters. */
export const chunks = ['I am', ' her', 'e an', 'd aw', 'ay.']

const errorFirst: Step = { fault: 'error-first-event' }

/** Before any content: the second provider answers in its place. */
export const failures: {
  says: string
  step: Step | typeof refused
  verdict: Verdict
  only?: 'whole' | 'stream'
  /** Once is enough: it is not asked again for a while. */
  leaves?: true
}[] = [
  { says: 'answers 500', step: { status: 500 }, verdict: [500, 'upstream_error'] },
  { says: 'answers 502', step: { status: 502, fault: 'html' }, verdict: [502, 'upstream_error'] },
  { says: 'answers 503', step: { status: 503 }, verdict: [503, 'upstream_error'] },
  { says: 'answers 529', step: { status: 529 }, verdict: [529, 'upstream_error'] },
  { says: 'answers 408', step: { status: 408 }, verdict: [408, 'timeout'] },
  { says: 'answers 409', step: { status: 409 }, verdict: [409, 'upstream_error'] },
  { says: 'answers 401', step: { status: 401 }, verdict: [401, 'upstream_error'], leaves: true },
  { says: 'answers 404', step: { status: 404 }, verdict: [404, 'upstream_error'] },
  { says: 'answers 429', step: { status: 429 }, verdict: [429, 'rate_limited'] },
  {
    says: 'answers 429 and asks for an hour',
    step: { status: 429, headers: { 'retry-after': '3600' } },
    verdict: [429, 'rate_limited'],
    leaves: true,
  },
  { says: 'says nothing', step: { fault: 'stall' }, verdict: [0, 'timeout'] },
  { says: 'sends early hints for ever', step: { fault: 'flood103' }, verdict: [0, 'timeout'] },
  { says: 'sends its head and nothing more', step: { fault: 'stall', afterChunks: 0 }, verdict: [0, 'timeout'] },
  { says: 'refuses the connection (E9)', step: refused, verdict: [0, 'network_error'] },
  { says: 'resets the connection (E9)', step: { fault: 'reset' }, verdict: [0, 'network_error'] },
  { says: 'closes the connection', step: { fault: 'refuse' }, verdict: [0, 'network_error'] },
  { says: 'does not speak HTTP', step: { socket: ['SSH-2.0-OpenSSH_9.2\r\n'] }, verdict: [0, 'network_error'] },
  { says: 'answers 200 with an error', step: { fault: 'error-in-200' }, verdict: [500, 'upstream_error'] },
  { says: 'answers 200 with a page (S20)', step: { fault: 'html' }, verdict: [200, 'upstream_error'] },
  { says: 'answers 200 with nothing', step: { fault: 'empty' }, verdict: [200, 'upstream_error'] },
  { says: 'redirects', step: { status: 302, headers: { location: '/b/v1' } }, verdict: [302, 'upstream_error'] },
  { says: 'sends an error first', step: errorFirst, verdict: [500, 'upstream_error'] },
  {
    says: 'breaks off in the body',
    step: { fault: 'fin', afterChunks: 1 },
    verdict: [0, 'network_error'],
    only: 'whole',
  },
  {
    says: 'says who speaks, and no more',
    step: { raw: ['data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'] },
    verdict: [200, 'upstream_error'],
    only: 'stream',
  },
  { says: 'sends half of the body', step: { fault: 'truncate' }, verdict: [200, 'upstream_error'], only: 'whole' },
]

/** After content: what was sent stands, and nobody begins again. */
export const breaks: { says: string; step: Step; verdict: Verdict; code: string; delivered?: number }[] = [
  { says: 'resets', step: { fault: 'reset' }, verdict: [200, 'network_error'], code: 'fetch_failed' },
  { says: 'closes', step: { fault: 'fin' }, verdict: [200, 'network_error'], code: 'fetch_failed' },
  { says: 'falls silent', step: { fault: 'stall' }, verdict: [200, 'timeout'], code: 'timeout' },
  {
    says: 'ends too early',
    step: { fault: 'truncate' },
    verdict: [200, 'upstream_error'],
    code: 'upstream_stream_truncated',
    delivered: 5,
  },
  { says: 'sends an error', step: { fault: 'error-event' }, verdict: [200, 'upstream_error'], code: 'upstream_error' },
]

/** Neither answers: the error that the client gets (docs/contract.md#failed-requests). */
export const defeats: {
  says: string
  a: Step | typeof refused
  b: Step | typeof refused
  status: number
  code: string
}[] = [
  { says: 'throttled', a: { status: 429 }, b: { status: 429 }, status: 503, code: 'upstream_rate_limited' },
  { says: 'unreachable', a: refused, b: refused, status: 502, code: 'fetch_failed' },
  { says: 'timed out', a: { fault: 'stall' }, b: { fault: 'stall' }, status: 504, code: 'timeout' },
  { says: 'failing differently', a: { status: 429 }, b: { status: 500 }, status: 502, code: 'all_providers_failed' },
  { says: 'refusing our key', a: { status: 401 }, b: { status: 403 }, status: 502, code: 'all_providers_failed' },
  { says: 'sending an error first', a: errorFirst, b: errorFirst, status: 502, code: 'all_providers_failed' },
]

const NEVER = '1h'
const patient = { connect: NEVER, first_event: NEVER, idle: NEVER, total: NEVER }
const hasty = { ...patient, first_event: '1s', idle: '1s' }
export const isSilent = (step: Step | typeof refused) =>
  step !== refused && (step.fault === 'stall' || step.fault === 'flood103')
/** On a busy machine, only a provider that falls silent is given up. */
export const timeoutsOf = (step: Step | typeof refused) => (isSilent(step) ? hasty : patient)
