/** `POST /oauth/token` and `/oauth/revoke` (RFC 6749, RFC 7009). */
import { createHash } from 'node:crypto'
import type { GrantType, NewTokens } from '../core/ports.ts'
import { opaque, sha256 } from '../lib/opaque.ts'
import { authenticated } from './client-auth.ts'
import type { KnownClient } from './client-metadata.ts'
import type { OAuthContext } from './context.ts'
import { invalidGrant, invalidScope, invalidTarget, oauthError } from './errors.ts'
import { formOf } from './form.ts'
import { isOwnResource, resourceOf } from './metadata.ts'
import { scopesIn } from './register.ts'

const TOKEN_BYTES = 32
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/

interface Answer {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly refresh_token?: string
  readonly scope: string
}

const grants: Readonly<
  Record<GrantType, (context: OAuthContext, client: KnownClient, form: URLSearchParams) => Promise<Answer>>
> = { authorization_code: byCode, refresh_token: byRefreshToken, client_credentials: byClientCredentials }

/** The 200 of a token request. Throws the error of the RFC. */
export async function token(context: OAuthContext): Promise<Answer> {
  checkQuery(context)
  const form = await formOf(context.ex)
  const client = await authenticated(context, form)
  const resource = form.get('resource')
  if (resource !== null && !isOwnResource(context.base, resource)) throw invalidTarget(context.base)
  const type = form.get('grant_type') ?? ''
  if (!Object.hasOwn(grants, type)) {
    const message = `grant_type must be one of ${Object.keys(grants).join(', ')}.`
    throw oauthError(400, form.has('grant_type') ? 'unsupported_grant_type' : 'invalid_request', message)
  }
  if (!client.grantTypes.includes(type as GrantType)) {
    throw oauthError(400, 'unauthorized_client', `The client did not register for ${type}.`)
  }
  const { metrics } = context.services
  try {
    const answer = await grants[type as GrantType](context, client, form)
    metrics.oauth(type as GrantType, 'ok')
    return answer
  } catch (thrown) {
    metrics.oauth(type as GrantType, 'refused')
    throw thrown
  }
}

/** Proxies log queries. */
function checkQuery({ ex }: OAuthContext): void {
  if (ex.http.query !== '')
    throw oauthError(400, 'invalid_request', 'Send the parameters in the body, not in the query.')
}

function required(form: URLSearchParams, name: string): string {
  const text = form.get(name)
  if (text !== null && text !== '') return text
  throw oauthError(400, 'invalid_request', `The parameter ${name} is missing.`)
}

interface Made {
  readonly tokens: NewTokens
  /** The response body, for these scopes. */
  answer(scopes: readonly string[]): Answer
}

function newTokens({ services, options }: OAuthContext, withRefresh: boolean): Made {
  const now = services.now()
  const access = opaque('mgw_at_', TOKEN_BYTES)
  const refresh = withRefresh ? opaque('mgw_rt_', TOKEN_BYTES) : undefined
  return {
    tokens: {
      access: { hash: access.hash, expiresAt: now + options.accessTokenMs },
      refresh: refresh && { hash: refresh.hash, expiresAt: now + options.refreshTokenMs },
    },
    answer: scopes => ({
      access_token: access.text,
      token_type: 'Bearer',
      expires_in: Math.floor(options.accessTokenMs / 1000),
      ...(refresh && { refresh_token: refresh.text }),
      scope: scopes.join(' '),
    }),
  }
}

const refreshes = ({ grantTypes }: KnownClient): boolean => grantTypes.includes('refresh_token')

async function byCode(context: OAuthContext, client: KnownClient, form: URLSearchParams): Promise<Answer> {
  const code = required(form, 'code')
  const redirectUri = required(form, 'redirect_uri')
  const verifier = required(form, 'code_verifier')
  if (!VERIFIER.test(verifier)) {
    throw oauthError(400, 'invalid_request', 'The code_verifier must be 43 to 128 unreserved characters.')
  }
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const { tokens, answer } = newTokens(context, refreshes(client))
  const presented = { hash: sha256(code), clientId: client.id, redirectUri, challenge }
  const issued = await context.services.oauth.grants.redeem(presented, tokens)
  if (issued === 'invalid_grant') throw invalidGrant()
  return answer(issued.scopes)
}

async function byRefreshToken(context: OAuthContext, client: KnownClient, form: URLSearchParams): Promise<Answer> {
  const hash = sha256(required(form, 'refresh_token'))
  const requested = form.get('scope') ?? undefined
  const scopes = requested === undefined ? undefined : requested.split(' ').filter(Boolean)
  if (scopes?.length === 0) throw invalidScope()
  const { tokens, answer } = newTokens(context, true)
  const issued = await context.services.oauth.grants.refresh({ hash, clientId: client.id, scopes }, tokens)
  if (issued === 'invalid_grant') throw invalidGrant()
  if (issued === 'invalid_scope') throw invalidScope()
  return answer(issued.scopes)
}

async function byClientCredentials(context: OAuthContext, client: KnownClient, form: URLSearchParams): Promise<Answer> {
  const requested = form.get('scope')
  const own = scopesIn(client.scopes.join(' '))
  const scopes = requested === null ? own : scopesIn(requested).filter(scope => own.includes(scope))
  if (scopes.length === 0) throw invalidScope()
  const { tokens, answer } = newTokens(context, false)
  const { grants } = context.services.oauth
  if (!(await grants.issue(client, scopes, resourceOf(context.base), tokens.access))) throw invalidGrant()
  return answer(scopes)
}

/** Revokes a token (RFC 7009). An unknown token is no error. */
export async function revoke(context: OAuthContext): Promise<void> {
  checkQuery(context)
  const form = await formOf(context.ex)
  const client = await authenticated(context, form)
  await context.services.oauth.grants.revokeToken(sha256(required(form, 'token')), client.id)
  context.services.metrics.oauth('revoke', 'ok')
}
