/** Results as clients read them: kept ones from here, others from their provider, with the client's ranges. */
import type { ContentAnswer, ContentRequest, Job, JobAnswer, JobResult } from '../core/ports.ts'
import type { Target } from '../core/translator.ts'
import { asError, errors } from '../lib/error.ts'
import type { JobsContext } from './context.ts'
import { pollMs, within } from './lease.ts'
import type { JobProvider } from './provider.ts'
import { targetsOf } from './targets.ts'

const FIXED = [
  'accept-ranges',
  'bytes',
  'cache-control',
  'private, max-age=3600',
  'content-disposition',
  'inline',
  'x-content-type-options',
  'nosniff',
  'referrer-policy',
  'no-referrer',
]
/** Statuses of a result that is gone, or of an address that has expired. */
const GONE: readonly number[] = [401, 403, 404, 410]

type Blob = Extract<JobResult, { kind: 'blob' }>
type Remote = Exclude<JobResult, { kind: 'blob' }>

/** Throws a GatewayError for a job that has no result. */
export async function contentOf(
  job: Job,
  request: ContentRequest,
  context: JobsContext,
  provider: JobProvider,
): Promise<ContentAnswer> {
  const { state, kind } = job
  if (job.completedAt === null) throw errors.jobNotReady(kind)
  if (state === 'failed' || state === 'canceled') throw errors.jobFailed(kind, state)
  if (job.expiresAt !== null && job.expiresAt <= context.now()) throw gone(kind)
  // Its provider names the address once more where the one that is kept cannot be opened.
  const result = job.result ?? (job.unreadable === undefined ? undefined : await found(job, request, context, provider))
  if (!result) throw gone(kind)
  return result.kind === 'blob' ? kept(result, request, job, context) : proxied(job, result, request, context, provider)
}

const gone = (kind: string) => errors.notFound(`The content of this ${kind} has expired.`)

async function kept({ blob, bytes, etag, type }: Blob, request: ContentRequest, job: Job, { blobs }: JobsContext) {
  const modified = job.completedAt === null ? undefined : new Date(job.completedAt).toUTCString()
  const span = spanOf(request, bytes, [etag, modified])
  const { start, end } = span ?? { start: 0, end: bytes - 1 }
  const chunks = await blobs.read(blob, start, end)
  if (!chunks) throw errors.contentUnavailable(new Error(`No file ${blob}: nodes need one folder jobs.blobs.`))
  const headers = [...FIXED, 'etag', etag, ...(modified ? ['last-modified', modified] : [])]
  headers.push('content-length', String(end - start + 1))
  if (span) headers.push('content-range', `bytes ${start}-${end}/${bytes}`)
  return { status: span ? (206 as const) : (200 as const), type, headers, chunks }
}

async function proxied(
  job: Job,
  result: Remote,
  request: ContentRequest,
  context: JobsContext,
  provider: JobProvider,
): Promise<ContentAnswer> {
  const [target] = await targetsOf(job, context)
  if (!target) throw errors.unreachable('the provider of the job is not configured any more')
  let answer = await open(job, target, result, request, provider)
  let place = result
  if (GONE.includes(answer.status)) {
    answer.destroy()
    const again = await found(job, request, context, provider)
    if (!again) {
      await context.store.expire(job.id, context.now())
      throw gone(job.kind)
    }
    place = again
    answer = await open(job, target, place, request, provider)
  }
  // Some providers ignore If-Range. The validators of the whole result then say whether there is a part (`passed`).
  const isPartial = answer.status === 206 || answer.status === 416
  if (isPartial && !isCurrent(request.ifRange, validatorsOf(answer))) {
    answer.destroy()
    answer = await open(job, target, place, { ...request, range: undefined }, provider)
  }
  if (answer.status === 416) {
    answer.destroy()
    throw errors.rangeNotSatisfiable(Number(/\/(\d+)$/.exec(answer.header('content-range') ?? '')?.[1] ?? 0))
  }
  if (answer.status !== 200 && answer.status !== 206) {
    answer.destroy()
    if (GONE.includes(answer.status)) {
      await context.store.expire(job.id, context.now())
      throw gone(job.kind)
    }
    throw errors.invalidAnswer(`its result answers with status ${answer.status}`, answer.status)
  }
  return passed(answer, request)
}

/** A fresh poll may name a new address. Undefined where the provider has the job or its result no more. */
async function found(
  job: Job,
  { signal }: ContentRequest,
  context: JobsContext,
  provider: JobProvider,
): Promise<Remote | undefined> {
  const late = errors.upstreamTimeout('where the result is')
  try {
    const { report, inline } = await within(pollMs(context), signal, late, signal => provider.poll(job, signal))
    await provider.results.discard(inline)
    if (report.state !== 'completed' || report.result?.kind === 'inline') return undefined
    return report.result ?? { kind: 'own' }
  } catch (thrown) {
    if (GONE.includes(asError(thrown).upstreamStatus ?? 0)) return undefined
    throw thrown
  }
}

function open(job: Job, target: Target, result: Remote, request: ContentRequest, provider: JobProvider) {
  const { range, ifRange, signal } = request
  const wanted = isOneRange(range) ? range : undefined
  const headers: Record<string, string> = {}
  if (wanted !== undefined) headers.range = wanted
  if (wanted !== undefined && ifRange !== undefined) headers['if-range'] = ifRange
  return provider.open(job, target, result, signal, headers)
}

/** A header that is no range is not passed on; the provider refuses a range outside of its result. */
function isOneRange(range: string | undefined): range is string {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(range?.trim() ?? '') ?? []
  if (first === undefined || (first === '' && last === '')) return false
  return first === '' || last === '' || Number(first) <= Number(last)
}

const validatorsOf = (answer: JobAnswer) => [answer.header('etag'), answer.header('last-modified')] as const

/** A range that the provider ignores is cut out of the whole result as it passes, if its length is known. */
function passed(answer: JobAnswer, request: ContentRequest): ContentAnswer {
  const [etag, modified] = validatorsOf(answer)
  const said = answer.header('content-type')?.toLowerCase() ?? ''
  const type = said.startsWith('video/') ? said : 'video/mp4'
  const length = answer.header('content-length')
  const headers = [...FIXED, ...(etag ? ['etag', etag] : []), ...(modified ? ['last-modified', modified] : [])]
  const chunks = closing(answer)
  const range = answer.header('content-range')
  if (answer.status === 206) {
    const isWanted = request.range !== undefined && isCurrent(request.ifRange, [etag, modified])
    if (range === undefined || !isPart(range) || !isWanted) {
      answer.destroy()
      throw errors.invalidAnswer('the part of its result is not the requested one')
    }
    headers.push('content-range', range, ...(length === undefined ? [] : ['content-length', length]))
    return { status: 206, type, headers, chunks }
  }
  const size = length === undefined ? undefined : Number(length)
  let span: ReturnType<typeof spanOf>
  try {
    span = size === undefined ? undefined : spanOf(request, size, [etag, modified])
  } catch (thrown) {
    answer.destroy()
    throw thrown
  }
  if (!span) {
    if (length !== undefined) headers.push('content-length', length)
    return { status: 200, type, headers, chunks }
  }
  const { start, end } = span
  headers.push('content-range', `bytes ${start}-${end}/${size}`, 'content-length', String(end - start + 1))
  return { status: 206, type, headers, chunks: cut(chunks, span) }
}

function isPart(range: string): boolean {
  const [, start, end, size] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(range) ?? []
  return start !== undefined && Number(start) <= Number(end) && (size === '*' || Number(end) < Number(size))
}

async function* closing(answer: JobAnswer): AsyncGenerator<Buffer> {
  try {
    yield* answer.chunks
  } finally {
    answer.destroy()
  }
}

interface Span {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

/** Whether a part continues what a client has: `If-Range` names one of the validators, strongly. */
const isCurrent = (ifRange: string | undefined, validators: readonly (string | undefined)[]): boolean =>
  ifRange === undefined || (!ifRange.startsWith('W/') && validators.includes(ifRange))

/** One range of a file (RFC 9110 sections 13.1.5 and 14.2). Undefined for the whole file: without a range, with several, and where `If-Range` names another one. Throws a 416. */
function spanOf(
  { range, ifRange }: { range: string | undefined; ifRange: string | undefined },
  size: number,
  validators: readonly (string | undefined)[],
): Span | undefined {
  if (range === undefined || !isCurrent(ifRange, validators)) return undefined
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.trim()) ?? []
  if (first === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const suffix = Number(last)
    if (suffix === 0 || size === 0) throw errors.rangeNotSatisfiable(size)
    return { start: Math.max(0, size - suffix), end: size - 1 }
  }
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  // RFC 9110 section 14.1.1: a range that ends before it begins is none.
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) throw errors.rangeNotSatisfiable(size)
  return { start, end }
}

/** The bytes of a span, of all that come. */
async function* cut(chunks: AsyncIterable<Buffer>, { start, end }: Span): AsyncGenerator<Buffer> {
  let at = 0
  for await (const chunk of chunks) {
    const from = Math.max(0, start - at)
    const to = Math.min(chunk.length, end + 1 - at)
    if (to > from) yield chunk.subarray(from, to)
    at += chunk.length
    if (at > end) return
  }
}
