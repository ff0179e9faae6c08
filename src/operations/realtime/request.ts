/** The canonical request of realtime sessions, and the settings that a client secret may fix. */
import { type Infer, s } from '../../core/schema.ts'

const text = s.string({ maxLength: 256 })
const object = s.open({})

const transcription = s.object({
  model: s.string({ minLength: 1, maxLength: 256 }),
  language: s.optional(text),
  prompt: s.optional(s.string()),
})
const turnDetection = s.object({
  type: s.enum('server_vad', 'semantic_vad'),
  create_response: s.optional(s.boolean()),
  interrupt_response: s.optional(s.boolean()),
  threshold: s.optional(s.number()),
  prefix_padding_ms: s.optional(s.integer({ minimum: 0 })),
  silence_duration_ms: s.optional(s.integer({ minimum: 0 })),
  eagerness: s.optional(s.enum('low', 'medium', 'high', 'auto')),
})
const input = {
  format: s.optional(object),
  noise_reduction: s.maybe(object),
  turn_detection: s.maybe(turnDetection),
}
/** Settings of a session with a model, fixed by its secret. */
const realtimeSession = s.object({
  type: s.enum('realtime'),
  model: s.string({ minLength: 1, maxLength: 256 }),
  instructions: s.optional(s.string()),
  output_modalities: s.optional(s.array(s.enum('text', 'audio'), { maxItems: 2 })),
  audio: s.optional(
    s.object({
      input: s.optional(s.object({ ...input, transcription: s.maybe(transcription) })),
      output: s.optional(
        s.object({ format: s.optional(object), voice: s.optional(s.unknown()), speed: s.optional(s.number()) }),
      ),
    }),
  ),
  tools: s.optional(s.array(object, { maxItems: 128 })),
  tool_choice: s.optional(s.unknown()),
  max_output_tokens: s.optional(s.either(s.integer({ minimum: 1, maximum: 1_000_000 }), s.enum('inf'))),
  truncation: s.optional(s.unknown()),
  parallel_tool_calls: s.optional(s.boolean()),
  reasoning: s.optional(object),
  include: s.optional(s.array(text, { maxItems: 16 })),
  tracing: s.maybe(s.unknown()),
  prompt: s.optional(s.unknown()),
})
/** Settings of a session that transcribes. */
const transcriptionSession = s.object({
  type: s.enum('transcription'),
  audio: s.object({ input: s.object({ ...input, transcription }) }),
})
/** The body of `POST /v1/realtime/client_secrets` (OpenAI's Realtime API). */
export const clientSecretBody = s.object({
  expires_after: s.optional(
    s.object({ anchor: s.optional(s.enum('created_at')), seconds: s.optional(s.integer({ minimum: 1 })) }),
  ),
  session: s.tagged(realtimeSession, transcriptionSession),
})
/** A valid body of `POST /v1/realtime/client_secrets`. */
type ClientSecretBody = Infer<typeof clientSecretBody>
/** The settings of a session as clients write them. */
export type SessionSettings = ClientSecretBody['session']

/** The canonical request of a session or of a client secret. */
export interface RealtimeRequest {
  /** Model that speaks, or that transcribes when nothing speaks. */
  readonly model: string
  readonly transcribes: boolean
  /** How long a client secret is to live. */
  readonly seconds?: number
  /** Settings fixed by the client secret. */
  readonly session?: SessionSettings | undefined
}

/** The model that a session is with. */
export const modelOf = (session: SessionSettings): string =>
  session.type === 'realtime' ? session.model : session.audio.input.transcription.model

declare module '../../core/ops.ts' {
  interface Ops {
    realtime: RealtimeRequest
  }
}
