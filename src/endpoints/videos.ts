/** `POST /v1/videos`, and the endpoints that read, cancel, remove and download videos (docs/jobs.md). */

import { BytesEncoder } from '../codecs/bytes-encoder.ts'
import { json } from '../codecs/json.ts'
import { videos as codec } from '../codecs/videos.ts'
import type { Codec } from '../core/codec.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Job, Principal, Services } from '../core/ports.ts'
import { type Reply, value } from '../core/reply.ts'
import { errorBody, errors } from '../lib/error.ts'
import { videos as operation } from '../operations/videos/index.ts'
import { ownerOf } from '../policy/owner.ts'
import { listOf, listQuery } from './list-query.ts'

const KIND = 'video'

const reads = { name: 'video-reads', chain: 'local', codec: json, bodyLimit: 0, body: 'none' } as const

/** Throws 401 without a key, and 403 for a publishable one. */
function callerOf({ caller: { principal } }: Exchange): Principal {
  if (!principal) throw errors.noCredentials()
  if (principal.kind === 'publishable') {
    throw errors.forbidden('Publishable keys cannot read videos: ask from your server, with a secret key.')
  }
  return principal
}

const unknown = () => errors.notFound('There is no such video.')

/** Keys see all videos of their project, an end user only its own. */
function isSeenBy(job: Job | undefined, caller: Principal): job is Job {
  const { projectId, session } = ownerOf(caller)
  const isOwn = job?.projectId === projectId && (session === undefined || job.session === session)
  return isOwn && job.kind === KIND && !isHidden(job)
}
const isHidden = ({ deletedAt, state }: Job): boolean => deletedAt !== null || state === 'creating'

async function own(ex: Exchange, { jobs }: Services): Promise<Job> {
  const caller = callerOf(ex)
  const job = await jobs.get(ex.http.params.id ?? '')
  if (!isSeenBy(job, caller)) throw unknown()
  return job
}

async function list(ex: Exchange, { jobs, jobRunner }: Services): Promise<Reply> {
  const caller = callerOf(ex)
  const { projectId, session } = ownerOf(caller)
  if (session !== undefined) throw errors.forbidden('A session cannot list videos. Read each video by its id.')
  const { limit, order, after } = listQuery(ex.http.query)
  if (after !== undefined && !isSeenBy(await jobs.get(after), caller)) {
    throw errors.invalidField('after', 'expected the id of a video of this project')
  }
  const found = await jobs.list({ projectId }, KIND, { after, limit: limit + 1, ascending: order === 'asc' })
  const shown = found.slice(0, limit).map(job => jobRunner.show(job))
  return value(listOf(shown, found.length > limit))
}

async function remove(ex: Exchange, services: Services): Promise<Reply> {
  const job = await own(ex, services)
  const { jobRunner } = services
  if (job.completedAt === null) return value(jobRunner.show(await jobRunner.cancel(job)))
  await jobRunner.remove(job)
  return value({ id: job.id, object: 'video.deleted', deleted: true })
}

async function content(ex: Exchange, job: Job, { jobRunner }: Services): Promise<Reply> {
  const variant = new URLSearchParams(ex.http.query).get('variant') ?? 'video'
  if (variant !== 'video') throw errors.invalidField('variant', 'only "video" is kept')
  const isHead = ex.http.method === 'HEAD'
  const range = { range: ex.header('range'), ifRange: ex.header('if-range') }
  const { status, type, headers, chunks } = await jobRunner.content(job, { ...range, isHead, signal: ex.signal })
  return { status, headers, events: bytesOf(chunks, type, isHead) }
}

/** Finds a job by its signed token without a key, or by a key of its project. */
async function byLogId(ex: Exchange, services: Services): Promise<Job> {
  const logId = ex.http.params.log_id ?? ''
  const token = new URLSearchParams(ex.http.query).get('token')
  if (token === '') throw errors.invalidField('token', 'is empty')
  if (token !== null) {
    const job = await services.jobRunner.byToken(token, logId)
    if (!job || isHidden(job)) throw unknown()
    return job
  }
  const caller = callerOf(ex)
  const job = await services.jobs.byLogId(logId)
  if (!isSeenBy(job, caller)) throw unknown()
  return job
}

/** For HEAD, one batch is enough: it makes the encoder write the head, and its bytes are not sent. */
async function* bytesOf(chunks: AsyncIterable<Buffer>, contentType: string, isHead: boolean): AsyncGenerator<Event[]> {
  for await (const bytes of chunks) {
    yield [{ type: 'bytes', bytes, contentType }]
    if (isHead) return
  }
}

const contentCodec: Codec<never> = {
  wire: 'video',
  decode: json.decode,
  encoder: () => new BytesEncoder('video/mp4'),
  error: errorBody,
}

/**
 * 404 for videos of other projects, and, where an end user asks, for those that it has not made. DELETE cancels a video
 * that is being made, and removes one that has ended.
 */
export const videos: readonly Endpoint[] = [
  {
    name: 'videos',
    method: 'POST',
    path: '/v1/videos',
    chain: 'inference',
    operation,
    codec,
    body: ['json', 'multipart'],
    bodyLimit: 64 * 1024 * 1024,
    serve: 'upstream',
  },
  { ...reads, method: 'GET', path: '/v1/videos', serve: list },
  {
    ...reads,
    method: 'GET',
    path: '/v1/videos/{id}',
    serve: async (ex, services) => value(services.jobRunner.show(await own(ex, services))),
  },
  { ...reads, method: 'DELETE', path: '/v1/videos/{id}', serve: remove },
  {
    ...reads,
    method: 'GET',
    path: '/v1/videos/{id}/content',
    codec: contentCodec,
    serve: async (ex, services) => content(ex, await own(ex, services), services),
  },
  {
    ...reads,
    method: 'GET',
    path: '/v1/videos/logs/{log_id}/content',
    codec: contentCodec,
    serve: async (ex, services) => content(ex, await byLogId(ex, services), services),
  },
]
