/** `alerts:` of `gateway.yaml`: which limits and credits to watch, and which address gets a callback. */
import { type Infer, s } from '../core/schema.ts'
import type { ConfigFile } from './file.ts'
import { called, url } from './schemas/terms.ts'

const names = s.optional(s.either(s.string({ minLength: 1 }), s.array(s.string({ minLength: 1 }), { minItems: 1 })))
const share = called('a share of a limit such as 0.8', s.number({ exclusiveMinimum: 0, maximum: 1 }))

/** One entry: `at` is for limits, `below` for credits. */
export const alertEntry = s.object({
  on: s.enum('limit', 'credits'),
  /** Shares of each limit at which it tells; half, four fifths and all by default. */
  at: s.optional(s.array(share, { minItems: 1, maxItems: 20 })),
  /** USD that the balance falls below. */
  below: s.optional(
    s.decimal({ pattern: '^\\d{1,9}(\\.\\d{1,9})?$', description: 'an amount of USD in quotes, such as "5.00"' }),
  ),
  /** Without it, only the log tells. */
  url: s.optional(url),
  /** Signs the callback. */
  secret: s.optional(s.string({ minLength: 1 })),
  format: s.default(s.enum('generic', 'slack'), 'generic'),
  /** Names and ids, which may hold `*`; all of what is given must fit. */
  match: s.optional(s.object({ orgs: names, projects: names, keys: names })),
})

/** The section. */
export const alertsEntry = s.default(s.array(alertEntry, { maxItems: 100 }), [])

/** Whether callbacks may go to an address, with the origins of `jobs.callback_to`. */
export type CallbackCheck = (url: string, allowed: readonly string[]) => boolean

/** Parts of gateway.yaml that the checks need. */
interface Alerting {
  readonly alerts: Infer<typeof alertsEntry>
  readonly jobs: { readonly callback_to: readonly string[] }
}

/** Throws a ConfigError at the first value that cannot be meant. */
export function checkAlerts({ value, source }: ConfigFile<Alerting>, isAllowed: CallbackCheck): void {
  for (const [index, { on, at, below, url, secret, format }] of value.alerts.entries()) {
    const refuse = (message: string, ...path: string[]) => source.error(message, ['alerts', index, ...path])
    if (on === 'credits' && below === undefined) {
      throw refuse('an alert on credits needs "below", an amount of USD such as "5.00"')
    }
    if (on === 'credits' && at !== undefined) throw refuse('"at" is for alerts on limits; credits have "below"', 'at')
    if (on === 'limit' && below !== undefined) {
      throw refuse('"below" is for alerts on credits; limits have "at", such as [0.5, 0.8, 1]', 'below')
    }
    if (url === undefined) {
      if (secret !== undefined) throw refuse('"secret" signs a callback, and this alert has no "url"', 'secret')
      if (format === 'slack') throw refuse('"format" is for a callback, and this alert has no "url"; add one', 'format')
      continue
    }
    if (format === 'generic' && secret === undefined) {
      throw refuse(
        'a callback is signed: add "secret", with the name of an environment variable such as ALERT_SECRET',
        'url',
      )
    }
    if (!isAllowed(url, value.jobs.callback_to)) {
      throw refuse(
        'callbacks go to public https addresses; add the origin to jobs.callback_to if this one is meant',
        'url',
      )
    }
  }
}
