/** `auth` of a provider's file → the auth scheme of its requests, and its credentials. */
import { isDeepStrictEqual } from 'node:util'
import { type Auth, type Credential, REGION } from '../core/provider-settings.ts'
import { isObject, listIn, objectIn } from '../json/json.ts'
import { awsKeys, type Parsed, serviceAccount } from '../secrets/credential.ts'
import { type ConfigFile, fingerprint } from './file.ts'
import type { CredentialEntry, ProviderFile } from './schemas/provider.ts'
import type { Path } from './source.ts'

type File = ConfigFile<ProviderFile>
type Key = Exclude<keyof CredentialEntry, 'scheme'>
interface Keys {
  readonly needs: readonly Key[]
  readonly takes?: readonly Key[]
  /** Keys allowed with `source` in place of `secret`. */
  readonly found?: readonly Key[]
}

const SERVICE = 'bedrock'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'

/** Keys of every credential of a list. */
const LISTED: readonly Key[] = ['name', 'weight', 'rpm', 'tpm', 'regions']

/** Required and optional keys of each scheme. */
const schemeKeys: Readonly<Record<Auth['scheme'], Keys>> = {
  none: { needs: [] },
  bearer: { needs: ['secret'] },
  header: { needs: ['header', 'secret'], takes: ['prefix'] },
  query: { needs: ['parameter', 'secret'] },
  'aws-sigv4': { needs: ['region', 'secret'], takes: ['service'], found: ['region', 'source'] },
  'gcp-oauth': { needs: ['secret'], takes: ['scope'], found: ['source'] },
}

/** One credential, or several in one text, with all that it is used by. */
interface AuthEntry extends CredentialEntry {
  readonly scheme: Auth['scheme']
}
interface PlacedEntry {
  readonly entry: AuthEntry
  readonly path: Path
  /** Whether it stands in a list, where it may have a name, a weight and limits. */
  readonly isListed: boolean
}

/** Keys that entries of a list do not share. */
const OWN: readonly Key[] = ['secret', 'source', 'profile', ...LISTED]

/**
 * The credentials of a manifest in their order. In a list, one without a scheme is used like the first; `bearer` where
 * that has none.
 */
function entriesOf({ auth }: ProviderFile): readonly PlacedEntry[] {
  if (Array.isArray(auth)) {
    const [first] = auth
    return auth.map((entry, index) =>
      placed(entry, shared({ ...first, scheme: first?.scheme ?? 'bearer' }), ['auth', index]),
    )
  }
  const { secrets, ...alone } = auth
  if (!secrets) return [{ entry: alone, path: ['auth'], isListed: false }]
  const all = secrets.map((entry, index) => placed(entry, shared(alone), ['auth', 'secrets', index]))
  return alone.secret === undefined ? all : [{ entry: alone, path: ['auth'], isListed: false }, ...all]
}

const placed = (entry: CredentialEntry, base: AuthEntry, path: Path): PlacedEntry => {
  const { scheme } = entry
  return {
    entry: scheme === undefined ? { ...base, ...entry, scheme: base.scheme } : { ...entry, scheme },
    path,
    isListed: true,
  }
}

const shared = (entry: AuthEntry): AuthEntry => {
  const kept = { ...entry }
  for (const key of OWN) delete kept[key]
  return kept
}

/** The scheme of a manifest's first credential. */
export const schemeOf = (value: ProviderFile): Auth['scheme'] => entriesOf(value)[0]!.entry.scheme

/** Paths of all secrets that a manifest may have, in values that were not checked. */
export function secretPaths(value: unknown): Path[] {
  const { auth } = value as { auth?: unknown }
  const { secrets } = objectIn(auth)
  const listed = (list: unknown, at: Path) =>
    // A text in the place of an entry was meant to be one.
    listIn(list).map((entry, index) => (isObject(entry) ? [...at, index, 'secret'] : [...at, index]))
  return [['auth', 'secret'], ...listed(auth, ['auth']), ...listed(secrets, ['auth', 'secrets'])]
}

/** The scheme of a provider's first credential. Throws a ConfigError. */
export function linkAuth(file: File): Auth {
  return authOf(file, entriesOf(file.value)[0]!)
}

function authOf({ source }: File, { entry, path, isListed }: PlacedEntry): Auth {
  const { scheme, header, prefix, parameter, region, service, scope, source: from, profile } = entry
  if (isListed && scheme === 'none') throw source.error('a credential of a list has a scheme other than "none"', path)
  const { needs, takes } = keysOf(entry)
  const missing = needs.find(key => !Object.hasOwn(entry, key))
  if (missing) throw source.error(`auth scheme "${scheme}" needs the key "${missing}"`, path)
  const keys: readonly string[] = [...needs, ...takes]
  const ofLists: readonly string[] = isListed ? LISTED : []
  const stray = Object.keys(entry).find(key => key !== 'scheme' && !keys.includes(key) && !ofLists.includes(key))
  if (stray) {
    const known = keys.length > 0 ? keys.join(', ').replace(/, (\S+)$/, ' and $1') : 'no other key'
    const why = `auth scheme "${scheme}" does not use the key "${stray}"; it takes ${known}`
    throw source.error(why, [...path, stray], 'key')
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
 * The secrets of each entry: of a comma-separated list, or the one JSON secret; [] for unset variables. Throws a
 * ConfigError that shows no part of a secret.
 */
export function linkCredentials(file: File): Credential[] {
  const { source, value } = file
  const entries = entriesOf(value)
  const usual = authOf(file, entries[0]!)
  const all = new Map<string, Credential>()
  for (const one of entries) {
    const { scheme, name, weight = 1, rpm, tpm, regions, profile } = one.entry
    const own = authOf(file, one)
    const auth = isDeepStrictEqual(own, usual) ? undefined : own
    if (regions && !value.base_url.includes(REGION))
      throw source.error(`"regions" needs an address with "${REGION}" in it`, [...one.path, 'regions'], 'key')
    for (const secret of secretsOf(file, one)) {
      const shown = fingerprint(secret || [scheme, profile ?? []].flat().join(' '))
      // The id names the secret, since another one in its place begins without a history.
      const id = `${value.provider}#${shown}${auth ? `.${fingerprint(JSON.stringify(auth))}` : ''}`
      if (all.has(id)) continue
      const limits = (rpm ?? tpm) === undefined ? undefined : Object.freeze({ rpm, tpm })
      const known = { id, source: 'platform', secret, fingerprint: shown, label: name, weight } as const
      all.set(id, { ...known, limits, regions, auth })
    }
  }
  const [only] = all.values()
  return all.size === 1
    ? [Object.freeze({ ...only!, weight: undefined })]
    : [...all.values()].map(one => Object.freeze(one))
}

/** A credential that is looked up may exist: that is left to the first request, and its secret is empty. */
function secretsOf({ source }: File, { entry: { scheme, secret: text = '', source: from }, path }: PlacedEntry) {
  if (from) return ['']
  const secrets = (scheme === 'gcp-oauth' ? [text] : text.split(','))
    .map(secret => secret.trim())
    // Unset variables leave the colons between them.
    .filter(secret => /[^:]/.test(secret))
  for (const secret of secrets) {
    const issue = issueOf(scheme, secret)
    if (issue) throw source.error(issue, [...path, 'secret'])
  }
  return secrets
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
