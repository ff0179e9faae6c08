/** The simulated provider's sessions, which repeat their input in text and as a tone. */

import type { SimulatedSession } from '../../core/operation.ts'
import { isObject, type Json, listIn, objectIn } from '../../json/json.ts'

/** 24 kHz, 16 bits. */
const BYTES_PER_SECOND = 48_000
const SAMPLES_PER_SECOND = 24_000
const RADIANS_PER_SAMPLE = (2 * Math.PI * 440) / SAMPLES_PER_SECOND
const LOUDNESS = 3000
const TOKENS_PER_SECOND = 20
const CHARACTERS_PER_SECOND = 15

let made = 0
const id = (prefix: string): string => `${prefix}_demo${(++made).toString(36)}`

function tone(seconds: number): string {
  const length = Math.ceil(seconds * SAMPLES_PER_SECOND)
  const samples = Int16Array.from({ length }, (_, at) => LOUDNESS * Math.sin(RADIANS_PER_SAMPLE * at))
  return Buffer.from(samples.buffer).toString('base64')
}

const textsOf = (item: unknown): string[] =>
  listIn(objectIn(item).content).flatMap(part => (isObject(part) && typeof part.text === 'string' ? [part.text] : []))

/** Sessions by path; each returns the function that takes the client's events. */
export const demoSession: NonNullable<Readonly<Record<string, SimulatedSession>>> = {
  '/realtime'(send, query) {
    const model = new URLSearchParams(query).get('model') ?? 'demo-realtime'
    const session: Json = {
      ...{ id: id('sess'), object: 'realtime.session', type: 'realtime', model, output_modalities: ['audio'] },
      audio: { input: { turn_detection: { type: 'server_vad', create_response: true } }, output: { voice: 'demo' } },
    }
    let said = ''
    let bytes = 0
    send({ type: 'session.created', event_id: id('event'), session })
    return event => {
      switch (event.type) {
        case 'session.update':
          if (isObject(event.session)) Object.assign(session, event.session)
          return send({ type: 'session.updated', event_id: id('event'), session })
        case 'conversation.item.create': {
          const item = { ...objectIn(event.item), id: id('item'), object: 'realtime.item' }
          said = textsOf(event.item).join(' ') || said
          return send({ type: 'conversation.item.added', event_id: id('event'), item })
        }
        case 'input_audio_buffer.append':
          if (typeof event.audio === 'string') bytes += (event.audio.length * 3) / 4
          return
        case 'input_audio_buffer.commit': {
          const usage = { type: 'duration', seconds: bytes / BYTES_PER_SECOND }
          said = `${usage.seconds.toFixed(1)} seconds of audio`
          bytes = 0
          const place = { event_id: id('event'), item_id: id('item') }
          send({ type: 'input_audio_buffer.committed', ...place })
          if (!isObject(objectIn(objectIn(session.audio).input).transcription)) return
          const transcribed = { type: 'conversation.item.input_audio_transcription.completed', content_index: 0 }
          return send({ ...transcribed, ...place, event_id: id('event'), transcript: said, usage })
        }
        case 'response.create':
          return respond(send, said, session)
      }
    }
  },
}

function respond(send: (event: object) => void, said: string, { output_modalities: modalities }: Json): void {
  const [response_id, item_id] = [id('resp'), id('item')]
  const place = { response_id, item_id, output_index: 0, content_index: 0 }
  const text = `This is a simulated answer. You said: ${said || 'nothing'}`
  const speaks = !listIn(modalities).includes('text')
  const seconds = text.length / CHARACTERS_PER_SECOND
  send({ type: 'response.created', event_id: id('event'), response: { id: response_id, status: 'in_progress' } })
  if (speaks) {
    send({ type: 'response.output_audio.delta', event_id: id('event'), ...place, delta: tone(Math.min(seconds, 2)) })
    send({ type: 'response.output_audio_transcript.delta', event_id: id('event'), ...place, delta: text })
    send({ type: 'response.output_audio.done', event_id: id('event'), ...place })
  } else {
    send({ type: 'response.output_text.delta', event_id: id('event'), ...place, delta: text })
    send({ type: 'response.output_text.done', event_id: id('event'), ...place, text })
  }
  const audio = speaks ? Math.ceil(Math.min(seconds, 2) * TOKENS_PER_SECOND) : 0
  const [input, output] = [Math.ceil(said.length / 4), Math.ceil(text.length / 4)]
  const usage = {
    total_tokens: input + output + audio,
    input_tokens: input,
    output_tokens: output + audio,
    input_token_details: { text_tokens: input, audio_tokens: 0, cached_tokens: 0 },
    output_token_details: { text_tokens: output, audio_tokens: audio },
  }
  const content = speaks ? { type: 'output_audio', transcript: text } : { type: 'output_text', text }
  const item = { id: item_id, object: 'realtime.item', type: 'message', role: 'assistant', content: [content] }
  const response = { id: response_id, object: 'realtime.response', status: 'completed', output: [item], usage }
  send({ type: 'response.done', event_id: id('event'), response })
}
