/** `realtime:` of `gateway.yaml`: what bounds sessions. */
import { parseMoney } from '../../core/money.ts'
import type { RealtimeOptions } from '../../core/realtime.ts'
import { type Infer, s } from '../../core/schema.ts'
import { someSize, someTime } from './terms.ts'

const count = s.integer({ minimum: 1, maximum: 1_000_000 })

/** The section; times are milliseconds, sizes bytes. */
export const realtimeEntry = s.default(
  s.object({
    enabled: s.default(s.boolean(), true),
    session: s.default(someTime, '60m'),
    idle: s.default(someTime, '5m'),
    spend: s.default(s.decimal({ pattern: '^\\d{1,9}(\\.\\d{1,9})?$' }), '10'),
    per_organization: s.default(count, 20),
    per_key: s.default(count, 10),
    per_process: s.default(count, 2000),
    message: s.default(someSize, '8MiB'),
    rate: s.default(someSize, '4MiB'),
  }),
  {},
)

/** The options of sessions, with `spend` in nano-USD. */
export const realtimeOptions = (entry: Infer<typeof realtimeEntry>): RealtimeOptions => ({
  enabled: entry.enabled,
  session: entry.session,
  idle: entry.idle,
  spend: parseMoney(entry.spend),
  perOrganization: entry.per_organization,
  perKey: entry.per_key,
  perProcess: entry.per_process,
  message: entry.message,
  rate: entry.rate,
})
