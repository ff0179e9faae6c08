/** `compat: { litellm: true }`: clients of LiteLLM go on as they are (docs/litellm-compat.md). */
import type { Codec } from '../../core/codec.ts'
import type { Endpoint } from '../../core/endpoint.ts'
import type { Exchange } from '../../core/exchange.ts'
import { encoderOf, errorAnswerOf } from './answer.ts'
import { healthEndpoints } from './health.ts'
import { keyInfo } from './key-info.ts'
import { management } from './management.ts'
import { modelInfo } from './model-info.ts'
import { isSettled, labelsIn, moveCredential, withModel } from './request.ts'

/** Paths below `/v1` that LiteLLM also serves without it. */
const UNPREFIXED =
  /^\/v1(\/(?:chat\/completions|completions|embeddings|moderations|rerank|ocr|audio\/.+|images\/.+|(?:models|responses|videos|realtime)(?:\/.+)?))$/
/** Paths that LiteLLM also serves with the model in them. */
const DEPLOYED = /^\/v1(\/(?:chat\/completions|completions|embeddings|images\/generations))$/
const DEPLOYMENTS = ['/openai/deployments/{+model}', '/engines/{+model}'] as const

interface Options {
  /** Whether a secret is the gateway's admin token, by which `/key/info` tells of every key. */
  isAdmin(secret: string): boolean
}

/** The mode's endpoints, and the forms in which it serves those of the gateway. */
export const litellm = ({ isAdmin }: Options) => ({
  endpoints: [...healthEndpoints, ...modelInfo, keyInfo(isAdmin), ...management] as const,
  adapt(endpoint: Endpoint): readonly Endpoint[] {
    const own = adapted(endpoint)
    const [, path] = UNPREFIXED.exec(endpoint.path) ?? []
    const [, deployed] = DEPLOYED.exec(endpoint.path) ?? []
    return [
      own,
      ...(path === undefined ? [] : [{ ...own, path }]),
      ...(deployed === undefined ? [] : DEPLOYMENTS.map(before => ({ ...own, path: before + deployed }))),
    ]
  },
})

function adapted(endpoint: Endpoint): Endpoint {
  const { check, codec, operation } = endpoint
  return {
    ...endpoint,
    codec: operation?.isSession ? ofCredentials(codec) : operation ? ofRequests(codec) : ofAnswers(codec),
    check(ex) {
      moveCredential(ex)
      check?.call(endpoint, ex)
    },
    errorAnswer: (error, ex) => errorAnswerOf(endpoint, error, ex),
  }
}

const ofCredentials = (codec: Codec): Codec => ({
  ...codec,
  credentials: (headers, query) => (isSettled(headers) ? [] : (codec.credentials?.(headers, query) ?? [])),
})

const ofAnswers = (codec: Codec): Codec => ({ ...ofCredentials(codec), encoder: ex => encoderOf(codec, ex) })

const ofRequests = (codec: Codec): Codec => ({
  ...ofAnswers(codec),
  decode(body: unknown, ex: Exchange) {
    ex.caller.labels = labelsIn(ex, body)
    return codec.decode(withModel(body, ex), ex)
  },
})
