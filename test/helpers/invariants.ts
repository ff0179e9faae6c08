/** Checks that must hold after every test with a gateway. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { judged } from './figure.ts'
import { type Gateway, upstreamSecret } from './gateway.ts'
import type { Upstream } from './upstream.ts'

export interface InvariantOptions {
  /**
   * Planted secrets that must not leak; the gateway's key and token, and the default provider secret, are always
   * checked.
   */
  secrets?: string[]
  /** Bodies of answers. */
  responses?: string[]
  /** The pid before the test, when no restart was intended. */
  pid?: number
}

/** Only the nightly run asserts the bound of an idle machine. */
const HEALTH_MS = judged ? 1000 : 30_000
const SETTLED_MS = judged ? 2000 : 30_000
const POLL_MS = 20

type Assert = Pick<Test, 'ok' | 'notOk' | 'equal' | 'same' | 'resolves'>

/** The process lives, nothing is in flight, no secret leaked, and the upstream received only allowed headers. */
export async function checkInvariants(
  t: Assert,
  gateway: Gateway,
  upstream?: Upstream,
  { secrets = [], responses = [], pid = gateway.pid }: InvariantOptions = {},
): Promise<void> {
  t.equal(gateway.pid, pid, 'INV-1: it is the process that it was')
  t.ok(isAlive(gateway.pid), 'INV-1: the process lives')
  const health = await fetch(gateway.url, { signal: AbortSignal.timeout(HEALTH_MS) })
  t.equal(health.status, 200, 'INV-1: GET / answers 200')
  await health.text()
  t.notOk(/unhandledRejection|uncaughtException/i.test(gateway.stderr()), 'INV-1: no error went unhandled')

  t.equal(await settledInFlight(gateway), 0, 'INV-2: no request stays in flight')

  const spoken = { stderr: gateway.stderr(), metrics: await gateway.metrics(), responses: responses.join('\n') }
  for (const [where, text] of Object.entries({ ...spoken, stdout: gateway.stdout() })) {
    const leaked = [...secrets, upstreamSecret, gateway.token].filter(secret => text.includes(secret))
    t.equal(leaked.length, 0, `INV-5: no planted secret in ${where}`)
  }
  for (const [where, text] of Object.entries(spoken)) {
    t.notOk(text.includes(gateway.key), `INV-5: no API key in ${where}; stdout shows it once, by contract`)
  }

  if (!upstream) return
  const entries = await upstream.record()
  await t.resolves(
    upstream.record(undefined, { ended: entries.length, timeoutMs: SETTLED_MS }),
    'INV-2: no upstream request still runs',
  )
  const foreign = entries.filter(entry => entry.violations.length > 0)
  const seen = foreign.map(({ path, violations }) => ({ path, violations }))
  t.same(seen, [], 'INV-8: the upstream saw no header of the client')
}

/** Internal details that an error must not show: stack frames, source files, statements. */
const inside = /\n\s+at |node:internal|node_modules|\.[jt]s:\d+|SQLITE_|\bSELECT\b.*\bFROM\b/

/** Whether a body is an error object, also of Google's wire, without internal details (docs/contract.md#errors). */
export function isErrorBody(json: unknown): boolean {
  const { type, error } = (json ?? {}) as { type?: unknown; error?: Record<string, unknown> }
  const isTextOrNull = (value: unknown) => value === null || typeof value === 'string'
  if (typeof error?.message !== 'string' || error.message === '' || inside.test(error.message)) return false
  if (typeof error.code === 'number') return typeof error.status === 'string'
  if (typeof error.type !== 'string') return false
  return type === 'error' || (type === undefined && isTextOrNull(error.param) && isTextOrNull(error.code))
}

/**
 * The sum of a metric's samples, of those that have all of `labels`.
 * Undefined when the metric is not even declared; 0 when it has no sample yet.
 */
export function metric(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  if (!text.includes(`# TYPE ${name} `)) return undefined
  let sum = 0
  for (const line of text.split('\n')) {
    const [, found, given = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? []
    if (found !== name) continue
    if (Object.entries(labels).every(([label, wanted]) => given.includes(`${label}="${wanted}"`))) sum += Number(value)
  }
  return sum
}

/** Resolves when the gateway serves `count` requests. */
export async function untilInFlight(gateway: Pick<Gateway, 'metrics'>, count: number): Promise<void> {
  while (metric(await gateway.metrics(), 'gateway_requests_in_flight') !== count) await sleep(POLL_MS)
}

/** The in-flight gauge once it is 0, or its value at the deadline. */
async function settledInFlight(gateway: Gateway): Promise<number | undefined> {
  const deadline = performance.now() + SETTLED_MS
  for (;;) {
    const inFlight = metric(await gateway.metrics(), 'gateway_requests_in_flight')
    if (inFlight === 0 || performance.now() > deadline) return inFlight
    await sleep(20)
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
