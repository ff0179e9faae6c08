/** Every endpoint, a row each. */
import type { Endpoint } from '../core/endpoint.ts'
import { chat } from './chat.ts'
import { embeddings } from './embeddings.ts'
import { health } from './health.ts'
import { key } from './key.ts'
import { messages } from './messages.ts'
import { models } from './models.ts'
import { rerank } from './rerank.ts'
import { sessions } from './sessions.ts'

export const endpoints: readonly Endpoint[] = [health, models, key, sessions, chat, messages, embeddings, ...rerank]
