/** Entries of `alerts` in gateway.yaml, ready to be asked. */
import { parseMoney } from '../core/money.ts'
import { sha256 } from '../lib/opaque.ts'
import type { AlertCaller } from '../limits/alerts.ts'
import { matcher } from '../limits/names.ts'

/** An entry as gateway.yaml has it. */
export interface AlertEntry {
  readonly on: 'limit' | 'credits'
  readonly at?: readonly number[] | undefined
  readonly below?: string | undefined
  readonly url?: string | undefined
  readonly secret?: string | undefined
  readonly format: 'generic' | 'slack'
  readonly match?:
    | {
        readonly orgs?: string | readonly string[] | undefined
        readonly projects?: string | readonly string[] | undefined
        readonly keys?: string | readonly string[] | undefined
      }
    | undefined
}

/** A share of a limit, in millionths beside the number itself. */
export interface Share {
  readonly fraction: number
  readonly millionths: bigint
}

/** One entry. */
export interface AlertRule {
  /** Stays the same while address, form and `match` do. */
  readonly id: string
  readonly on: AlertEntry['on']
  /** Ascending; none for credits. */
  readonly shares: readonly Share[]
  readonly below: bigint
  readonly url: string | undefined
  readonly secret: string | undefined
  readonly format: AlertEntry['format']
  fits(caller: AlertCaller): boolean
}

/** Shares in millionths have so many parts. */
export const WHOLE = 1_000_000n
const USUAL = [0.5, 0.8, 1]

/** A short text that differs where the values do. */
export const digestOf = (...values: unknown[]): string => sha256(JSON.stringify(values)).slice(0, 32)

/** Compiles the entries of a configuration. */
export const compileAlerts = (entries: readonly AlertEntry[]): readonly AlertRule[] => entries.map(compile)

function compile({ on, at = USUAL, below = '0', url, secret, format, match = {} }: AlertEntry): AlertRule {
  const [orgs, projects, keys] = [match.orgs, match.projects, match.keys].map(matcher)
  const shares = on === 'credits' ? [] : [...new Set(at)].sort((a, b) => a - b)
  return {
    id: digestOf(on, url, format, match),
    on,
    shares: shares.map(fraction => ({
      fraction,
      millionths: BigInt(Math.max(1, Math.round(fraction * Number(WHOLE)))),
    })),
    below: parseMoney(below),
    ...{ url, secret, format },
    fits: ({ orgId, orgName, projectId, keyId, keyName }) =>
      (!orgs || orgs(orgId) || orgs(orgName)) &&
      (!projects || projects(projectId)) &&
      (!keys || keys(keyId) || keys(keyName)),
  }
}
