/** The key, sessions of end users, realtime secrets, and the gateway itself. */
import { s } from '../../core/schema.ts'
import { answered, constant, named, orNull, type Rows } from '../row.ts'

const usd = s.string({ description: 'USD, as a decimal.' })
const time = s.string({ format: 'date-time' })
const probe = s.open({ connected: s.boolean(), error: s.optional(s.string()) })

const keyStatus = named(
  'KeyStatus',
  s.open({
    data: s.open({
      label: s.string(),
      usage: usd,
      limit: orNull(usd),
      periodLimit: s.optional(usd),
      periodUsage: s.optional(usd),
      period: s.optional(s.string()),
      periodResetsAt: s.optional(orNull(time)),
      devPlan: s.enum('none', 'lite', 'pro', 'max'),
      devPlanCreditsUsed: usd,
      devPlanCreditsLimit: usd,
      devPlanCreditsRemaining: usd,
      devPlanPremiumWeeklyLimit: usd,
      devPlanPremiumCreditsUsed: usd,
      devPlanPremiumWeekResetsAt: orNull(time),
    }),
  }),
)

const session = named(
  'Session',
  s.open({
    id: s.string(),
    sessionToken: s.string({ description: 'The key of the end user; shown this once.' }),
    customer: s.string(),
    scope: s.open({ models: orNull(s.array(s.string())), maxSpend: orNull(usd) }),
    expiresAt: time,
  }),
)

const health = named(
  'Health',
  s.open({
    message: s.string(),
    version: s.string(),
    health: s.open({ status: s.enum('ok', 'unhealthy'), redis: probe, database: probe }),
  }),
)

const secret = named(
  'RealtimeSecret',
  s.open({
    value: s.string({ description: 'The client secret; shown this once.' }),
    expires_at: s.integer(),
    session: s.open({
      id: s.string(),
      object: constant('realtime.session'),
      type: s.enum('realtime', 'transcription'),
      model: s.string(),
    }),
  }),
)

/** Rows by method and path. */
export const account: Rows = {
  'GET /': {
    id: 'getHealth',
    tag: 'Gateway',
    summary: 'Ask whether the gateway and its stores work',
    query: {
      skip: {
        description: 'Checks to leave out: `redis`, `database`, or both with a comma.',
        schema: { type: 'string', pattern: '^((redis|database)(,(redis|database))*)?$' },
        example: 'redis',
      },
    },
    answers: {
      200: {
        description: 'All configured stores answer.',
        content: { 'application/json': health },
        example: {
          message: 'Model Gateway is running',
          version: '0.1.0',
          health: {
            status: 'ok',
            redis: { connected: false, error: 'not configured' },
            database: { connected: true },
          },
        },
      },
      503: { description: 'A configured store does not answer.', content: { 'application/json': health } },
    },
  },
  'GET /openapi.json': {
    id: 'getOpenApi',
    tag: 'Gateway',
    summary: 'Read this document',
    headers: { 'if-none-match': { description: 'The `etag` of a known copy.' } },
    answers: {
      200: {
        description: 'An OpenAPI 3.1 document.',
        content: { 'application/json': s.open({ openapi: s.string() }) },
      },
      304: { description: 'The known copy is current.' },
    },
  },
  'GET /v1/key': {
    id: 'getKey',
    tag: 'Account',
    summary: 'Read what the key has spent and may spend',
    description: 'Only for regular keys.',
    answers: answered('The status of the key.', keyStatus),
  },
  'POST /v1/sessions': {
    id: 'createSession',
    tag: 'Account',
    summary: 'Begin a session of an end user, with a key of its own',
    body: 'SessionRequest',
    examples: {
      small: { summary: 'A session of 15 minutes', value: { customer: 'user-42' } },
      limited: {
        summary: 'A session with limits',
        value: {
          customer: { externalId: 'user-42', email: 'user@example.com' },
          scope: { models: ['demo'], maxSpend: '0.50' },
          ttlSeconds: 600,
        },
      },
    },
    answers: answered('The session.', session),
  },
  'GET /v1/realtime': {
    id: 'openRealtimeSession',
    tag: 'Realtime',
    summary: 'Open a WebSocket to a model',
    description: 'A request without an upgrade is a 426.',
    query: {
      model: {
        description: 'The model; left out with a client secret.',
        schema: { type: 'string', maxLength: 256 },
        example: 'demo-realtime',
      },
      intent: { description: '`transcription` for a session that transcribes.' },
    },
    answers: { 101: { description: 'The connection is a WebSocket.' } },
    also: [426],
    needs: 'realtime',
  },
  'POST /v1/realtime/client_secrets': {
    id: 'createRealtimeSecret',
    tag: 'Realtime',
    summary: 'Make a secret with which a browser opens one session',
    body: 'RealtimeSecretRequest',
    examples: {
      voice: {
        summary: 'A session by voice',
        value: {
          expires_after: { anchor: 'created_at', seconds: 60 },
          session: { type: 'realtime', model: 'demo-realtime', instructions: 'Answer briefly.' },
        },
      },
    },
    answers: answered('The secret.', secret),
    needs: 'realtime',
  },
}
