/** `jobs:` of `gateway.yaml`: polling, retention and callbacks of jobs. */
import { s } from '../../core/schema.ts'
import { called, text } from './terms.ts'

const origin = s.string({
  pattern: '^https?://[^\\s/?#@]+$',
  description: 'a scheme, a host and perhaps a port, such as "http://hooks.internal:9000"',
})
const some = called('a number from 1 to 1000', s.integer({ minimum: 1, maximum: 1000 }))

/** The section; times are milliseconds, sizes bytes. */
export const jobsEntry = s.object({
  /** First delay between polls of a running job, and its maximum. */
  poll: s.default(s.duration(), '5s'),
  poll_max: s.default(s.duration(), '30s'),
  /** Time limit of the whole job. */
  timeout: s.default(s.duration(), '60m'),
  /** Retention of rows, results and signed addresses after the end of a job. */
  keep: s.default(s.duration(), '7d'),
  lease: s.default(s.duration(), '30s'),
  /** Concurrent polls of one process; a provider gets at most half of them. */
  concurrency: s.default(some, 16),
  results: s.default(s.enum('auto', 'keep', 'proxy'), 'auto'),
  blobs: s.default(text, '../data/blobs'),
  max_result: s.default(s.size(), '2GiB'),
  /** All kept results together; one organization may have half of it. */
  max_kept: s.default(s.size(), '100GiB'),
  /** Results that clients read at a time, in one process. */
  streams: s.default(called('a number from 1 to 10000', s.integer({ minimum: 1, maximum: 10_000 })), 256),
  /** Callbacks at a time: of one process, of one organization, and to one host, half of them of one organization. */
  callback_concurrency: s.default(some, 100),
  callback_per_organization: s.default(some, 10),
  callback_per_host: s.default(some, 8),
  /** First delay between attempts; it doubles up to an hour. */
  callback_retry: s.default(s.duration(), '30s'),
  callback_attempts: s.default(some, 8),
  callback_timeout: s.default(s.duration(), '30s'),
  /** Origins to which callbacks may go although they are private or plain http. */
  callback_to: s.default(s.array(origin), []),
})
