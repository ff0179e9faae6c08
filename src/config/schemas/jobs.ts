/** `jobs:` of `gateway.yaml`: how work that outlives its request is polled, kept and told of. */
import { type Infer, s } from '../../core/schema.ts'
import { called, text } from './terms.ts'

const origin = s.string({
  pattern: '^https?://[^\\s/?#@]+$',
  description: 'a scheme, a host and perhaps a port, such as "http://hooks.internal:9000"',
})
const some = called('a number from 1 to 1000', s.integer({ minimum: 1, maximum: 1000 }))

export const jobsEntry = s.object({
  /** The gap after an answer that is not the end, and what it grows to. */
  poll: s.default(s.duration(), '5s'),
  poll_max: s.default(s.duration(), '30s'),
  /** Of the whole job. */
  timeout: s.default(s.duration(), '60m'),
  /** Rows, results and signed addresses, from the end of the job. */
  keep: s.default(s.duration(), '7d'),
  lease: s.default(s.duration(), '30s'),
  /** Polls at once in one process; a provider gets at most half of them. */
  concurrency: s.default(some, 16),
  results: s.default(s.enum('auto', 'keep', 'proxy'), 'auto'),
  blobs: s.default(text, '../data/blobs'),
  max_result: s.default(s.size(), '2GiB'),
  /** The first gap between attempts; it doubles up to an hour. */
  callback_retry: s.default(s.duration(), '30s'),
  callback_attempts: s.default(some, 8),
  callback_timeout: s.default(s.duration(), '30s'),
  /** Origins that callbacks may go to though they are private or plain http. */
  callback_to: s.default(s.array(origin), []),
})
export type JobsEntry = Infer<typeof jobsEntry>
