/** Dynamic client registration (RFC 7591). No address in the metadata is fetched, and names stay unverified. */
import { type Validator, validator } from '../codecs/validate.ts'
import type { ClientAuthentication, GrantType, NewClient } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'
import { errors } from '../lib/error.ts'
import { opaque } from '../lib/opaque.ts'
import { type Scope, scopes } from '../mcp/tool.ts'
import { countAttempt, type OAuthContext } from './context.ts'
import { oauthError } from './errors.ts'
import { redirectIssue } from './redirects.ts'

const MAX_REDIRECTS = 20
const MAX_NAME_CHARACTERS = 100
const ID_BYTES = 16
const SECRET_BYTES = 32
const DEFAULT_NAME = 'MCP client'
const GRANT_TYPES = ['authorization_code', 'refresh_token', 'client_credentials'] as const
const METHODS = ['none', 'client_secret_basic', 'client_secret_post'] as const

const text = s.optional(s.string({ maxLength: 2_000 }))
const body = s.open({
  redirect_uris: s.optional(s.array(s.string())),
  client_name: s.optional(s.string()),
  token_endpoint_auth_method: text,
  grant_types: s.optional(s.array(s.string(), { maxItems: 20 })),
  scope: text,
})
const checked = validator(body)

const invalid = (message: string) => oauthError(400, 'invalid_client_metadata', message)

/** The schema of registrations, and what compiles it. */
export const registration: Pick<Validator<unknown>, 'json' | 'prepare'> = checked

/** The 201 of a registration. Its secret is shown this once. */
export async function register(context: OAuthContext): Promise<object> {
  const { ex, services, options } = context
  await countAttempt(context, 'register', options.limits.register)
  const given: unknown = await ex.input.read()
  const issue = checked.issue(given)
  if (issue) throw invalid(`${issue.path} ${issue.message}`.trim())
  const client = clientOf(given as Infer<typeof body>, options.redirectSchemes)
  const keyId = client.grantTypes.includes('client_credentials') ? boundKey(context, client) : null
  const secret = client.method === 'none' ? undefined : opaque('mgw_cs_', SECRET_BYTES)
  const { text: id } = opaque('mgw_cl_', ID_BYTES)
  await services.oauth.clients.register({ ...client, id, keyId, secretHash: secret?.hash ?? null })
  services.metrics.oauth('register', 'ok')
  return {
    client_id: id,
    client_id_issued_at: Math.floor(services.now() / 1000),
    ...(secret && { client_secret: secret.text, client_secret_expires_at: 0 }),
    client_name: client.name,
    redirect_uris: client.redirectUris,
    grant_types: client.grantTypes,
    response_types: client.grantTypes.includes('authorization_code') ? ['code'] : [],
    token_endpoint_auth_method: client.method,
    scope: client.scopes.join(' '),
  }
}

type Described = Pick<NewClient, 'name' | 'redirectUris' | 'grantTypes' | 'method' | 'scopes'>

function clientOf(given: Infer<typeof body>, schemes: ReadonlySet<string>): Described {
  const grantTypes = grantTypesOf(given.grant_types)
  const method = given.token_endpoint_auth_method ?? 'client_secret_basic'
  if (!isOneOf(METHODS, method)) throw invalid(`token_endpoint_auth_method must be one of ${METHODS.join(', ')}.`)
  const usesRedirects = grantTypes.includes('authorization_code')
  const redirectUris = usesRedirects || given.redirect_uris?.length ? redirectsOf(given.redirect_uris, schemes) : []
  const known = scopesIn(given.scope)
  return {
    name: nameOf(given.client_name),
    redirectUris,
    grantTypes,
    method: method as ClientAuthentication,
    scopes: known.length > 0 ? known : scopes,
  }
}

function grantTypesOf(given: readonly string[] | undefined): readonly GrantType[] {
  if (!given || given.length === 0) return ['authorization_code', 'refresh_token']
  const unknown = given.find(type => !isOneOf(GRANT_TYPES, type))
  if (unknown !== undefined) throw invalid(`grant_types may hold ${GRANT_TYPES.join(', ')}.`)
  return GRANT_TYPES.filter(type => given.includes(type))
}

/** The known scopes of a `scope` parameter, in canonical order. */
export const scopesIn = (given: string | undefined): readonly Scope[] =>
  scopes.filter(scope => (given ?? '').split(' ').includes(scope))

const isOneOf = <T extends string>(all: readonly T[], one: string): one is T => (all as readonly string[]).includes(one)

/** Throws `invalid_redirect_uri`, which names the first invalid one. */
export function redirectsOf(given: readonly string[] | undefined, schemes: ReadonlySet<string>): readonly string[] {
  const wrong = (message: string) => oauthError(400, 'invalid_redirect_uri', message)
  if (!given || given.length === 0 || given.length > MAX_REDIRECTS) {
    throw wrong(`redirect_uris must hold 1 to ${MAX_REDIRECTS} URIs.`)
  }
  for (const uri of given) {
    const issue = redirectIssue(uri, schemes)
    if (issue !== undefined) throw wrong(`The redirect URI "${uri.slice(0, 200)}" ${issue}.`)
  }
  return given
}

/** Throws 400 for a name that is too long or has control characters. */
export function nameOf(given: string | undefined): string {
  const name = (given ?? DEFAULT_NAME).trim() || DEFAULT_NAME
  if (name.length > MAX_NAME_CHARACTERS || /\p{Cc}/u.test(name)) {
    throw invalid(`client_name must have at most ${MAX_NAME_CHARACTERS} characters, none of them a control character.`)
  }
  return name
}

/** The API key of the request, to which a client of `client_credentials` is bound. Throws 401 without a regular one. */
function boundKey({ ex }: OAuthContext, { method }: Described): string {
  const { principal } = ex.caller
  if (!principal) throw errors.noCredentials()
  // The caller of a token has other rights than the key of its issuer, and an end.
  if (principal.kind !== 'key' || principal.session || principal.token || principal.issuer !== undefined) {
    throw errors.invalidKey('it is not a regular API key, which client_credentials needs.')
  }
  if (method === 'none') throw invalid('A client with client_credentials must authenticate with a secret.')
  return principal.keyId
}
