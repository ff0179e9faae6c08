/** Client wire of realtime sessions: what opens one, and what client secrets are made of (docs/realtime.md). */

import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Headers } from '../core/http-request.ts'
import { catalogOf } from '../core/policy.ts'
import { errorBody, errors } from '../lib/error.ts'
import {
  clientSecretBody,
  modelOf,
  type RealtimeRequest,
  type SessionSettings,
} from '../operations/realtime/request.ts'
import { json } from './json.ts'
import { validator } from './validate.ts'

/** Prefix of the subprotocol in which browsers send a client secret. */
const SECRET_PROTOCOL = 'openai-insecure-api-key.'
const MAX_MODEL_CHARACTERS = 256

/** Client secrets among the offered subprotocols; empty without one. */
export function secretsOf(headers: Headers): string[] {
  const offered = headers['sec-websocket-protocol']
  if (typeof offered !== 'string') return []
  const names = offered.split(',').map(name => name.trim())
  return names.filter(name => name.startsWith(SECRET_PROTOCOL)).map(name => name.slice(SECRET_PROTOCOL.length))
}

/** Opens a session, from the query and the client secret. */
export const realtime: Codec<'realtime'> = {
  wire: 'realtime',
  credentials: secretsOf,
  decode: (_body, ex) => opened(ex),
  encoder: json.encoder,
  error: errorBody,
}

function opened(ex: Exchange): RealtimeRequest {
  const { principal } = ex.caller
  // It may stand for an end user, or for less than its key.
  if (principal && (principal.kind !== 'key' || principal.token)) {
    throw errors.forbidden('Realtime sessions are opened by regular API keys, and by client secrets.')
  }
  const query = new URLSearchParams(ex.http.query)
  const named = query.get('model') ?? undefined
  const session = principal?.realtime ? (JSON.parse(principal.realtime.session) as SessionSettings) : undefined
  if (!session) {
    if (named === undefined || named === '' || named.length > MAX_MODEL_CHARACTERS) {
      throw errors.invalidField('model', 'is required in the query')
    }
    return { model: named, transcribes: query.get('intent') === 'transcription' }
  }
  const model = modelOf(session)
  const catalog = catalogOf(ex)
  const idOf = (name: string) => (catalog.models.get(name) ?? catalog.aliases.get(name))?.id ?? name
  if (named !== undefined && idOf(named) !== idOf(model)) {
    throw errors.unsupported(`The client secret is for "${model}": leave the model out.`, 'model', 'model_mismatch')
  }
  return { model, transcribes: session.type === 'transcription', session }
}

const validate = validator(clientSecretBody)

/** Reads what a client secret is to open. */
export const clientSecrets: Codec<'realtime'> = {
  wire: 'realtime',
  requestSchema: validate.json,
  prepare: validate.prepare,
  decode(body): RealtimeRequest {
    const issue = validate.issue(body)
    if (issue)
      throw errors.unsupported(`${issue.path || 'The request body'}: ${issue.message}`, issue.path, 'invalid_request')
    const { session, expires_after } = validate(body)
    const seconds = expires_after?.seconds
    return {
      ...{ model: modelOf(session), transcribes: session.type === 'transcription', session },
      ...(seconds !== undefined && { seconds }),
    }
  },
  encoder: json.encoder,
  error: errorBody,
}
