/** `auth` of a provider's file → the auth scheme of its requests, and its credentials. */
import type { Auth, Credential } from '../core/provider-settings.ts'
import { awsKeys, type Parsed, serviceAccount } from '../secrets/credential.ts'
import { type ConfigFile, fingerprint } from './file.ts'
import type { AuthEntry, ProviderFile } from './schemas/provider.ts'

type File = ConfigFile<ProviderFile>
type Key = Exclude<keyof AuthEntry, 'scheme'>
interface Keys {
  readonly needs: readonly Key[]
  readonly takes?: readonly Key[]
  /** Keys allowed with `source` in place of `secret`. */
  readonly found?: readonly Key[]
}

const SERVICE = 'bedrock'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'

/** Required and optional keys of each scheme. */
const schemeKeys: Readonly<Record<Auth['scheme'], Keys>> = {
  none: { needs: [] },
  bearer: { needs: ['secret'] },
  header: { needs: ['header', 'secret'], takes: ['prefix'] },
  query: { needs: ['parameter', 'secret'] },
  'aws-sigv4': { needs: ['region', 'secret'], takes: ['service'], found: ['region', 'source'] },
  'gcp-oauth': { needs: ['secret'], takes: ['scope'], found: ['source'] },
}

/** Throws a ConfigError. */
export function linkAuth({ source, value }: File): Auth {
  const { scheme, header, prefix, parameter, region, service, scope, source: from, profile } = value.auth
  const { needs, takes } = keysOf(value.auth)
  const missing = needs.find(key => !Object.hasOwn(value.auth, key))
  if (missing) throw source.error(`auth scheme "${scheme}" needs the key "${missing}"`, ['auth'])
  const keys: readonly string[] = [...needs, ...takes]
  const stray = Object.keys(value.auth).find(key => key !== 'scheme' && !keys.includes(key))
  if (stray) {
    const known = keys.length > 0 ? keys.join(', ').replace(/, (\S+)$/, ' and $1') : 'no other key'
    const why = `auth scheme "${scheme}" does not use the key "${stray}"; it takes ${known}`
    throw source.error(why, ['auth', stray], 'key')
  }
  switch (scheme) {
    case 'header':
      return { scheme, header: header!, ...(prefix && { prefix }) }
    case 'query':
      return { scheme, parameter: parameter! }
    case 'aws-sigv4':
      return { scheme, region: region!, service: service ?? SERVICE, ...(from && { source: from, profile }) }
    case 'gcp-oauth':
      return { scheme, scope: scope ?? SCOPE, ...(from && { source: from }) }
    default:
      return { scheme }
  }
}

/** The keys of an entry: `source` replaces `secret` and allows a profile. */
function keysOf({ scheme, source }: AuthEntry): { needs: readonly Key[]; takes: readonly Key[] } {
  const { needs, takes = [], found } = schemeKeys[scheme]
  if (source === undefined || !found) return { needs, takes }
  return { needs: found, takes: scheme === 'aws-sigv4' ? [...takes, 'profile'] : takes }
}

/** Characters of a header value: visible ones, spaces and tabs. */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * The secrets of a comma-separated list, or the one JSON secret; [] for an unset variable. Throws a ConfigError that
 * shows no part of a secret.
 */
export function linkCredentials({ source, value }: File): Credential[] {
  const { scheme, secret: text = '', source: from } = value.auth
  if (from) {
    // A credential may exist; looking it up is left to the first request.
    return [
      Object.freeze({ id: `${value.provider}#1`, source: 'platform', secret: '', fingerprint: fingerprint(scheme) }),
    ]
  }
  const secrets = (scheme === 'gcp-oauth' ? [text] : text.split(',')).map(secret => secret.trim())
  return [...new Set(secrets)].filter(Boolean).map((secret, index) => {
    const issue = issueOf(scheme, secret)
    if (issue) throw source.error(issue, ['auth', 'secret'])
    const id = `${value.provider}#${index + 1}`
    return Object.freeze({ id, source: 'platform', secret, fingerprint: fingerprint(secret) })
  })
}

/** Why a secret cannot be used with a scheme, without repeating it; undefined when it can. */
export function issueOf(scheme: Auth['scheme'], secret: string): string | undefined {
  if (scheme === 'gcp-oauth') return accountProblem(secret)
  if (!HEADER_VALUE.test(secret))
    return 'a secret contains a line break or another character that a header cannot carry'
  return scheme === 'aws-sigv4' ? parseIssue(awsKeys(secret)) : undefined
}

function accountProblem(secret: string): string | undefined {
  const parsed = serviceAccount(secret)
  if ('issue' in parsed) return parsed.issue
  const { tokenUri } = parsed.value
  if (tokenUri === undefined || travelsSafely(new URL(tokenUri))) return undefined
  return 'the "token_uri" of the service account must start with "https://": plain http is for loopback addresses'
}

const parseIssue = (parsed: Parsed<unknown>): string | undefined => ('issue' in parsed ? parsed.issue : undefined)

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|(?:[a-z0-9-]+\.)?localhost)$/

/** Whether a credential may be sent to this address: over TLS, or within this machine. */
export const travelsSafely = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname))
