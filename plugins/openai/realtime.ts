/** OpenAI's sessions over a WebSocket, `openai.realtime` (docs/contributing/wire-sources.md#openai). */
import {
  countIn,
  errors,
  isObject,
  type Json,
  objectIn,
  type RealtimeForm,
  type RealtimeRequest,
  type Target,
  type Translator,
  type Usage,
  type WireRequest,
} from '../../src/plugin.ts'
import { plainError } from '../shared/answer.ts'
import { withCache } from '../shared/usage-reports.ts'

const SECONDS_PER_HOUR = 3600
/** No session uses more of anything at once: a larger count is a provider's defect. */
const MAX_COUNT = 1e9

function encode({ transcribes }: Readonly<RealtimeRequest>, { mapping }: Target): WireRequest {
  const model = encodeURIComponent(mapping.externalId)
  return { method: 'GET', path: transcribes ? '/realtime?intent=transcription' : `/realtime?model=${model}`, body: {} }
}

const within = (value: unknown): number | undefined => {
  const count = countIn(value)
  return count !== undefined && count <= MAX_COUNT ? count : undefined
}

/** Tokens as responses and transcripts report them; undefined without whole counts. */
function tokensIn(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const [prompt, completion] = [within(usage.input_tokens), within(usage.output_tokens)]
  if (prompt === undefined || completion === undefined) return undefined
  const read = objectIn(usage.input_token_details)
  const written = objectIn(usage.output_token_details)
  const cachedParts = objectIn(read.cached_tokens_details)
  const counts: Usage = { prompt, completion }
  /** No part is more than its total. */
  const set = (axis: keyof Usage, value: number | undefined, total = prompt) => {
    if (value !== undefined && value > 0) counts[axis] = Math.min(value, total)
  }
  const cached = Math.min(within(read.cached_tokens) ?? 0, prompt)
  const writes = Math.min(within(read.cache_write_tokens) ?? 0, prompt)
  set('input_cache_read', cached)
  set('input_cache_write', withCache(prompt, cached, writes).written)
  set('input_audio', within(read.audio_tokens))
  set('input_audio_cache_read', within(cachedParts.audio_tokens))
  // Cached images cost what all that is cached costs.
  set('image_input', Math.max(0, (within(read.image_tokens) ?? 0) - (within(cachedParts.image_tokens) ?? 0)))
  set('output_audio', within(written.audio_tokens), completion)
  return counts
}

const form: RealtimeForm = {
  usage: ({ usage }: Readonly<Json>) => tokensIn(usage),
  transcriptUsage({ usage }) {
    if (isObject(usage) && usage.type === 'duration') {
      const { seconds } = usage
      const isSound = typeof seconds === 'number' && seconds >= 0 && seconds <= MAX_COUNT
      return isSound ? { input_audio_hour: seconds / SECONDS_PER_HOUR } : undefined
    }
    return tokensIn(usage)
  },
  settings: new Set([
    ...['type', 'model', 'instructions', 'output_modalities', 'audio', 'tools', 'tool_choice', 'parallel_tool_calls'],
    ...['max_output_tokens', 'truncation', 'include', 'reasoning', 'conversation', 'input', 'metadata', 'tracing'],
    'prompt',
  ]),
  events: new Set([
    ...['session.update', 'response.create', 'response.cancel', 'conversation.item.create'],
    ...['conversation.item.retrieve', 'conversation.item.truncate', 'conversation.item.delete'],
    ...['input_audio_buffer.append', 'input_audio_buffer.commit', 'input_audio_buffer.clear'],
    'output_audio_buffer.clear',
  ]),
  // "An integer between 1 and 4096", or "inf".
  mostOutput: 4096,
}

/** OpenAI's Realtime API over a WebSocket; `decoder` is never called. */
export const realtime: Translator<'realtime'> = {
  op: 'realtime',
  wire: 'openai.realtime',
  encode,
  realtime: form,
  decoder() {
    throw errors.internal(new Error('a session has no one answer'))
  },
  error: plainError,
}
