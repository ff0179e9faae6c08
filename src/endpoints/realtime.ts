/** `GET /v1/realtime`, a WebSocket to a model, and the client secrets by which browsers open one (docs/realtime.md). */

import { clientSecrets, realtime as codec, secretsOf } from '../codecs/realtime.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Exchange } from '../core/exchange.ts'
import { catalogOf } from '../core/policy.ts'
import type { Principal, Services } from '../core/ports.ts'
import { type Reply, value } from '../core/reply.ts'
import type { Target } from '../core/translator.ts'
import { estimateTokens, textSize } from '../core/usage.ts'
import { errors } from '../lib/error.ts'
import { realtime as operation } from '../operations/realtime/index.ts'
import type { RealtimeRequest, SessionSettings } from '../operations/realtime/request.ts'
import { openSession } from '../realtime/open.ts'
import { isFunctions, transcriptionAt } from '../realtime/settings.ts'
import { namedModels, namesMeant, plansOf } from '../routing/named-models.ts'
import { isByok } from '../routing/policy.ts'
import { RequestQuery } from '../routing/query.ts'
import { countRule } from '../routing/rules.ts'

const PATH = '/v1/realtime'
const MAX_BODY_BYTES = 256 * 1024
/** Seconds that a client secret lives. */
const LIFE = { usual: 60, least: 10, most: 300 }
const MAX_INSTRUCTION_TOKENS = 16_384
const QUERY_CREDENTIALS = ['token', 'api_key', 'client_secret', 'key']

const row = { name: 'realtime', operation } as const

/** OpenAI's realtime API. Client secrets live 10 to 300 seconds. */
export const realtime: readonly Endpoint[] = [
  {
    ...row,
    method: 'GET',
    path: PATH,
    chain: 'inference',
    codec,
    bodyLimit: 0,
    body: 'none',
    upgrade: true,
    check: checkOpening,
    serve: (ex, services) => openSession(ex, services, name => namesMeant(queryOf(ex), name)),
  },
  {
    ...row,
    method: 'POST',
    path: `${PATH}/client_secrets`,
    chain: 'local',
    codec: clientSecrets,
    bodyLimit: MAX_BODY_BYTES,
    check: checkEnabled,
    serve: mint,
  },
]

function checkEnabled({ snapshot }: Exchange): void {
  if (!snapshot.realtime.enabled) throw errors.realtimeDisabled()
}

function checkOpening(ex: Exchange): void {
  checkEnabled(ex)
  const query = new URLSearchParams(ex.http.query)
  const shown = QUERY_CREDENTIALS.find(name => query.has(name))
  if (shown !== undefined) {
    const message = `${shown}: addresses are kept in logs. Send the credential in a header, or as a subprotocol.`
    throw errors.unsupported(message, shown, 'credentials_in_query')
  }
  if (query.has('call_id')) throw errors.invalidField('call_id', 'calls are not supported')
  const secrets = secretsOf(ex.http.headers)
  const hasHeader = ex.header('authorization') !== undefined || ex.header('x-api-key') !== undefined
  if (secrets.length > 1 || (secrets.length === 1 && hasHeader)) {
    const message = 'Two credentials were sent. Send one: in a header, or as a subprotocol.'
    throw errors.unsupported(message, 'sec-websocket-protocol', 'conflicting_credentials')
  }
  if (secrets.some(secret => !secret.startsWith('ek_'))) throw errors.invalidClientSecret()
  if (!ex.http.upgrade) throw errors.upgradeRequired(PATH)
}

async function mint(ex: Exchange, services: Services): Promise<Reply> {
  const { principal } = ex.caller
  if (!principal) throw errors.noCredentials()
  if (principal.kind !== 'key' || principal.token) {
    throw errors.forbidden('Client secrets are made by regular API keys.')
  }
  const request = (await ex.readRequest()) as RealtimeRequest
  const session = request.session!
  ex.requested.model = request.model
  const named = namedModels(queryOf(ex), services.random, rule => countRule(services, rule))
  checkSession(session)
  checkPlan(ex, principal)
  const targets = plansOf(named, { auto: [] }).flatMap(({ found }) => found.targets)
  checkTranscription(ex, session, targets)
  await checkMoney(principal, targets, services)
  const seconds = Math.min(LIFE.most, Math.max(LIFE.least, request.seconds ?? LIFE.usual))
  const ends = principal.expiresAt ?? Number.POSITIVE_INFINITY
  const expiresAt = Math.floor(Math.min(services.now() + seconds * 1000, ends) / 1000)
  const { id, secret } = await services.realtimeSecrets.begin({
    principal,
    session: JSON.stringify(session),
    expiresAt: expiresAt * 1000,
  })
  const { virtual = targets[0]!.mapping.model.id } = named[0]!
  return value({
    value: secret,
    expires_at: expiresAt,
    session: { id, object: 'realtime.session', type: session.type, model: virtual },
  })
}

const queryOf = (ex: Exchange): RequestQuery => new RequestQuery(ex, catalogOf(ex), ex.request!, undefined, true)

function checkSession(session: SessionSettings): void {
  if (session.type === 'transcription') return
  if (session.tools !== undefined && !isFunctions(session.tools)) {
    throw errors.unsupported(
      'session.tools: tools must be of the type "function".',
      'session.tools',
      'tool_type_not_supported',
    )
  }
  if (session.prompt != null) {
    throw errors.unsupported('session.prompt: send instructions instead.', 'session.prompt', 'prompt_not_supported')
  }
  if (session.tracing != null) {
    throw errors.unsupported('session.tracing: only null is supported.', 'session.tracing', 'invalid_request')
  }
  if (estimateTokens(textSize(session.instructions ?? '')) > MAX_INSTRUCTION_TOKENS) {
    const message = `session.instructions: more than ${MAX_INSTRUCTION_TOKENS} tokens.`
    throw errors.unsupported(message, 'session.instructions', 'instructions_too_large')
  }
}

function checkPlan({ snapshot, endpoint }: Exchange, { plan: subscription }: Principal): void {
  const plan = subscription && snapshot.plans.get(subscription.plan)
  if (plan && !plan.endpoints.has(endpoint.name)) throw errors.forbidden('Coding plans cannot use this endpoint.')
}

/** The model that transcribes what is said is one of the same provider. */
function checkTranscription(ex: Exchange, session: SessionSettings, targets: readonly Target[]): void {
  const name = session.type === 'realtime' ? session.audio?.input?.transcription?.model : undefined
  if (name === undefined) return
  const path = 'session.audio.input.transcription.model'
  const meant = namesMeant(queryOf(ex), name)
  const found = targets.flatMap(({ provider }) => transcriptionAt(catalogOf(ex), meant, provider) ?? [])[0]
  if (!found) {
    const message = `${path}: no provider of the session's model transcribes by "${name.slice(0, 100)}".`
    throw errors.unsupported(message, path, 'transcription_model_not_supported')
  }
  if (ex.caller.access?.issue(found)) {
    throw errors.forbidden(`${path}: ${name.slice(0, 100)} may not be used.`).with({
      code: 'transcription_model_not_allowed',
      param: path,
    })
  }
}

/** Checks that money is left for any response at all. The session holds money for each response itself. */
async function checkMoney(principal: Principal, targets: readonly Target[], services: Services): Promise<void> {
  const { budgets } = await services.keys.status(principal)
  const full = budgets.find(
    ({ spent, held, limit, onLimit = 'refuse' }) => onLimit === 'refuse' && spent + held >= limit,
  )
  if (full) {
    const isHeld = full.spent < full.limit
    throw errors.spent(
      `A usage limit of the API key is reached${isHeld ? ' while money is held for running requests. Repeat this when they have ended' : ''}.`,
    )
  }
  const isOwn = targets.every(({ credential }) => isByok(credential))
  const isFree = targets.every(({ mapping }) => Object.values(mapping.pricing).every(usd => usd === '0'))
  if (isOwn || isFree || principal.account === 'open') return
  const { balance } = await services.ledger.balance(principal.orgId)
  if (balance <= 0n) throw errors.insufficientCredits('nothing is left', '')
}
