/** A job as its client gets it, with the signed address of its result. */

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Job } from '../core/ports.ts'
import type { JobsContext } from './context.ts'

/** The object of the job's operation, such as a `video`. */
export function jobObject(job: Job, context: JobsContext): object {
  return context.kinds.get(job.kind)!.show(job, addressOf(job, context))
}

function addressOf(job: Job, { tokenKeys, options, publicUrl, kinds }: JobsContext): string | undefined {
  const { logId, completedAt, expiresAt, result } = job
  if (completedAt === null || !result) return undefined
  const ends = Math.min(completedAt + options().keep, expiresAt ?? Number.POSITIVE_INFINITY)
  const token = tokenFor(tokenKeys()[0]!, logId, ends)
  return `${publicUrl()}/v1/${kinds.get(job.kind)!.kind}s/logs/${logId}/content?token=${token}`
}

/** Signed addresses are compact JWTs of one log id and a time, and of nothing else. */
const HEADER = Buffer.from('{"alg":"HS256"}').toString('base64url')

const macOf = (key: Buffer, signed: string): Buffer => createHmac('sha256', key).update(signed).digest()

/** `expiresAt` in Unix milliseconds. */
export function tokenFor(key: Buffer, logId: string, expiresAt: number): string {
  const claims = Buffer.from(JSON.stringify({ l: logId, exp: Math.floor(expiresAt / 1000) })).toString('base64url')
  const signed = `${HEADER}.${claims}`
  return `${signed}.${macOf(key, signed).toString('base64url')}`
}

/** A digest of 32 bytes in its one spelling: another text of the same bytes is another token. */
const MAC = /^[\w-]{42}[AEIMQUYcgkosw048]$/

/** Whether a token is one of `keys` for this log id, and has not expired. */
export function isValidToken(keys: readonly Buffer[], token: string, logId: string, now: number): boolean {
  const [header, claims, mac, ...rest] = token.split('.')
  if (rest.length > 0 || header !== HEADER || claims === undefined || !MAC.test(mac ?? '')) return false
  const given = Buffer.from(mac!, 'base64url')
  const signed = `${header}.${claims}`
  if (!keys.some(key => timingSafeEqual(macOf(key, signed), given))) return false
  const { l, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')) as { l: string; exp: number }
  return l === logId && exp * 1000 > now
}
