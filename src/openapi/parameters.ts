/** Headers that many operations have. */
import type { Endpoint } from '../core/endpoint.ts'
import type { Parameter } from './row.ts'

/** Headers of requests that run a model. */
const inference: Readonly<Record<string, Parameter>> = {
  'x-session-id': { description: 'Keeps the requests of a session with one provider.' },
  'x-source': { description: 'Address of the app that the request counts for.', example: 'https://app.example.com' },
  'x-no-fallback': { description: '`true` tries one provider alone.', example: 'true' },
  'x-no-cache': { description: '`true` skips the response cache.', example: 'true' },
  'x-request-id': { description: 'Id that the answer and the log repeat.' },
}

/** The usual request headers of an endpoint. */
export const headersOf = ({ serve }: Endpoint): Readonly<Record<string, Parameter>> =>
  serve === 'upstream' ? inference : {}

const text = { schema: { type: 'string' } }
const number = { schema: { type: 'integer' } }

/** Headers of answers, as components. */
export const answerHeaders = {
  'x-request-id': { description: 'Id of the request.', ...text },
  'retry-after': { description: 'Seconds to wait.', ...number },
  'ratelimit-policy': { description: 'The limit of requests, as a structured field.', ...text },
  ratelimit: { description: 'What is left of the limit, as a structured field.', ...text },
  'ratelimit-limit': { description: 'Requests of a window.', ...number },
  'ratelimit-remaining': { description: 'Requests that are left in the window.', ...number },
  'ratelimit-reset': { description: 'Seconds until the window ends.', ...number },
  'x-gateway-provider': { description: 'The provider that answers.', ...text },
  'x-gateway-model': { description: 'The model that answers.', ...text },
  'x-gateway-cost': { description: 'Cost in USD.', ...text },
  'x-gateway-cache': { description: '`HIT` for a replay from the cache.', ...text },
} as const

/** Names of the headers of an answer that is no error. */
export const answerHeadersOf = ({ serve, open }: Endpoint): readonly (keyof typeof answerHeaders)[] => {
  if (open) return ['x-request-id']
  const limits = ['ratelimit-policy', 'ratelimit', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'] as const
  const all = ['x-request-id', ...limits] as const
  return serve === 'upstream'
    ? [...all, 'x-gateway-provider', 'x-gateway-model', 'x-gateway-cost', 'x-gateway-cache']
    : all
}
