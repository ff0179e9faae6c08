/** Every endpoint, a row each. */
import type { Endpoint } from '../core/endpoint.ts'
import { aiSdkEndpoints } from './ai-sdk.ts'
import { gemini } from './gemini.ts'
import { health } from './health.ts'
import {
  chat,
  completions,
  countTokens,
  embeddings,
  images,
  messages,
  moderations,
  ocr,
  rerank,
  responses,
  speech,
  systemone,
  transcriptions,
} from './inference.ts'
import { key } from './key.ts'
import { mcp } from './mcp.ts'
import { model } from './model.ts'
import { models } from './models.ts'
import { oauth } from './oauth.ts'
import { openApi } from './openapi.ts'
import { realtime } from './realtime.ts'
import { sessions } from './sessions.ts'
import { storedResponses } from './stored-responses.ts'
import { videos } from './videos.ts'

/**
 * All endpoints in order of precedence: the first template that fits a path serves it. A literal path precedes every
 * template.
 */
export const endpoints: readonly Endpoint[] = [
  health,
  openApi(() => endpoints),
  models,
  model,
  key,
  sessions,
  chat,
  messages,
  responses,
  ...storedResponses,
  countTokens,
  completions,
  ...aiSdkEndpoints,
  embeddings,
  moderations,
  ocr,
  ...rerank,
  systemone,
  speech,
  ...transcriptions,
  ...images,
  ...gemini,
  ...videos,
  ...realtime,
  ...mcp,
  ...oauth,
]
