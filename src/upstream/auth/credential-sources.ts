/** Where a process finds the credentials that no manifest holds: its environment, files, and metadata. */
import { readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { LRUCache } from 'lru-cache'
import type { Auth } from '../../core/provider-settings.ts'
import type { Egress } from '../../lib/egress.ts'
import { upstreamError } from '../../wire/upstream-error.ts'
import { AccessToken, type Grant } from './access-token.ts'
import { callEndpoint } from './endpoint.ts'
import type { Strategy } from './strategy.ts'

const MAX_FILE_BYTES = 256 * 1024
const MAX_CACHED_TOKENS = 100

/** The environment, home folder, files and HTTP endpoints that default credentials are read from. */
export interface CredentialSources {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  /** Undefined for a file that is not there. */
  read(path: string): Promise<string | undefined>
  readonly call: typeof callEndpoint
  readonly egress?: Egress | undefined
}

/** Sources of this process, whose connections leave like that. `read` rejects with a GatewayError for files that are too large or unreadable. */
export const processSources = (egress: Egress | undefined): CredentialSources => ({
  env: process.env,
  home: homeFolder(),
  async read(path) {
    try {
      if ((await stat(path)).size > MAX_FILE_BYTES) throw missing(`the file "${path}" is too large for credentials`)
      return await readFile(path, 'utf8')
    } catch (thrown) {
      const { code } = thrown as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      throw code === undefined ? thrown : missing(`the file "${path}" cannot be read: ${code}`)
    }
  },
  call: (url, request) => callEndpoint(url, { ...request, egress }),
  egress,
})

/** Returns `HOME`, else the home folder of the user's entry, else `/`: containers run as any user. */
function homeFolder(): string {
  try {
    return homedir()
  } catch {
    return '/'
  }
}

/** Credentials that are not there, or not of a known kind: another provider may answer. */
export const missing = (why: string) => upstreamError(401, { message: `No credential: ${why}.` })

type Found = Extract<Auth, { source?: 'default' | undefined }>

/**
 * `strategy` with what `find` finds in place of a secret, for manifests that say `source: default`; kept while it lasts,
 * for all requests. An organization's own key is a secret of its own.
 */
export function foundBy<S extends Found['scheme']>(
  find: (auth: Extract<Found, { scheme: S }>, now: number, egress: Egress | undefined) => Promise<Grant>,
  strategies: { readonly given: Strategy<S>; readonly found: Strategy<S> },
): Strategy<S> {
  const kept = new LRUCache<string, AccessToken>({ max: MAX_CACHED_TOKENS })
  return (out, auth, credential, clock, egress) => {
    const { source } = auth as Found
    if (!source || credential.secret !== '') return strategies.given(out, auth, credential, clock, egress)
    const key = JSON.stringify(auth)
    let token = kept.get(key)
    if (!token) {
      token = new AccessToken((now, way) => find(auth as Extract<Found, { scheme: S }>, now, way))
      kept.set(key, token)
    }
    const secret = token.take(clock, egress)
    if (typeof secret === 'string') return strategies.found(out, auth, { ...credential, secret }, clock)
    return secret.then(found => strategies.found(out, auth, { ...credential, secret: found }, clock))
  }
}
