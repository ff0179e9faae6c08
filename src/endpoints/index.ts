/** Every endpoint, a row each. */
import type { Endpoint } from '../core/endpoint.ts'
import { aiSdkEndpoints } from './ai-sdk.ts'
import { chat } from './chat.ts'
import { completions } from './completions.ts'
import { countTokens } from './count-tokens.ts'
import { embeddings } from './embeddings.ts'
import { gemini } from './gemini.ts'
import { health } from './health.ts'
import { images } from './images.ts'
import { key } from './key.ts'
import { mcp } from './mcp.ts'
import { messages } from './messages.ts'
import { model } from './model.ts'
import { models } from './models.ts'
import { moderations } from './moderations.ts'
import { oauth } from './oauth.ts'
import { ocr } from './ocr.ts'
import { realtime } from './realtime.ts'
import { rerank } from './rerank.ts'
import { responses } from './responses.ts'
import { sessions } from './sessions.ts'
import { speech } from './speech.ts'
import { storedResponses } from './stored-responses.ts'
import { systemone } from './systemone.ts'
import { transcriptions } from './transcriptions.ts'
import { videos } from './videos.ts'

/** Of several templates that fit a path the first serves it; a literal path precedes them all. */
export const endpoints: readonly Endpoint[] = [
  health,
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
