/** Images, audio and videos. */
import { type Schema, s } from '../../core/schema.ts'
import { imageEditForm } from '../../operations/images/request.ts'
import { answered, binary, constant, cursor, listOf, named, orNull, PIXEL, type Rows } from '../row.ts'
import { costDetails } from './accounting.ts'

const cost = s.optional(orNull(s.number()))
const tokens = s.open({ image_tokens: s.number(), text_tokens: s.number() })
const usage = named(
  'ImageUsage',
  s.open({
    input_tokens: s.number(),
    input_tokens_details: tokens,
    output_tokens: s.number(),
    output_tokens_details: tokens,
    total_tokens: s.number(),
    cost,
    cost_details: s.optional(costDetails),
  }),
)
const text = s.optional(s.string())
const image = s.open({ b64_json: s.string(), revised_prompt: text })
const about = { background: text, output_format: text, quality: text, size: text }
const images = named(
  'Images',
  s.open({ created: s.number(), data: s.array(image), ...about, usage: s.optional(usage) }),
)
const failure = named('FailureEvent', s.open({ type: constant('error'), error: s.open({ message: s.string() }) }))
const imageEvents = (prefix: string) =>
  s.either(
    s.open({
      type: constant(`${prefix}.partial_image`),
      b64_json: s.string(),
      partial_image_index: s.integer(),
      created_at: s.number(),
      ...about,
    }),
    s.open({
      type: constant(`${prefix}.completed`),
      b64_json: s.string(),
      created_at: s.number(),
      usage: s.optional(usage),
      ...about,
    }),
    failure,
  )

const audioUsage = named(
  'AudioUsage',
  s.either(
    s.open({
      type: constant('tokens'),
      input_tokens: s.number(),
      input_token_details: s.optional(s.open({ text_tokens: s.number(), audio_tokens: s.number() })),
      output_tokens: s.number(),
      total_tokens: s.number(),
      cost,
    }),
    s.open({ type: constant('duration'), seconds: s.number(), cost }),
  ),
)
const segment = s.open({ start: s.number(), end: s.number(), text: s.string(), speaker: text })
const transcript = named(
  'Transcript',
  s.open({
    text: s.string(),
    task: text,
    language: text,
    duration: s.optional(s.number()),
    segments: s.optional(s.array(segment)),
    words: s.optional(s.array(s.open({ word: s.string(), start: s.number(), end: s.number() }))),
    logprobs: s.optional(orNull(s.array(s.open({})))),
    usage: audioUsage,
  }),
)
const transcriptEvent = s.either(
  s.open({ type: constant('transcript.text.delta'), delta: s.string() }),
  s.open({ type: constant('transcript.text.segment'), id: s.string(), speaker: s.string(), text: s.string() }),
  s.open({ type: constant('transcript.text.done'), text: s.string(), usage: audioUsage }),
  failure,
)
const written: Readonly<Record<string, Schema<unknown>>> = {
  'application/json': transcript,
  'text/plain': s.string(),
  'text/vtt': s.string(),
  'application/x-subrip': s.string(),
}

const speechEvent = s.either(
  s.open({ type: constant('speech.audio.delta'), audio: s.string() }),
  s.open({
    type: constant('speech.audio.done'),
    usage: s.open({ input_tokens: s.number(), output_tokens: s.number(), total_tokens: s.number(), cost }),
  }),
  failure,
)
const audioTypes = ['audio/mpeg', 'audio/wav', 'audio/opus', 'audio/aac', 'audio/flac', 'audio/pcm']
const audio = Object.fromEntries([...audioTypes, 'application/octet-stream'].map(type => [type, binary]))

const status = s.enum('queued', 'in_progress', 'completed', 'failed', 'canceled', 'expired')
const second = orNull(s.integer())
const video = named(
  'Video',
  s.open({
    id: s.string(),
    object: constant('video'),
    model: s.string(),
    status,
    progress: orNull(s.number()),
    created_at: second,
    completed_at: second,
    expires_at: second,
    seconds: s.string(),
    size: s.string(),
    prompt: orNull(s.string()),
    remixed_from_video_id: orNull(s.string()),
    error: orNull(s.open({ code: s.string(), message: s.string() })),
    content: s.optional(s.array(s.open({ type: constant('video'), url: s.string(), mime_type: s.string() }))),
    usage: s.optional(s.open({ cost: s.number(), cost_details: s.record(s.number()) })),
  }),
)
const one = { id: { description: 'The id of a video.' } }
const range = {
  range: { description: 'A range of bytes.', example: 'bytes=0-1023' },
  'if-range': { description: 'The `etag` for which the range holds.' },
}
const film = {
  200: { description: 'The film.', content: { 'video/mp4': binary, 'video/webm': binary } },
  206: { description: 'A part of the film.', content: { 'video/mp4': binary, 'video/webm': binary } },
}
/** A WAV file of 8 ms whose bytes are ASCII, so that JSON can hold them. */
const WAV = `RIFFd\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data@\0\0\0${'@'.repeat(64)}`

/** Rows by method and path. */
export const media: Rows = {
  'POST /v1/images/generations': {
    id: 'createImage',
    tag: 'Images',
    summary: 'Make images from a text',
    body: 'ImageRequest',
    examples: {
      whole: { summary: 'An image', value: { model: 'demo-image', prompt: 'A red square' } },
      streamed: { summary: 'A streamed image', value: { model: 'demo-image', prompt: 'A red square', stream: true } },
    },
    answers: answered('The images, in base64. With `stream: true`: server-sent events.', images, {
      stream: imageEvents('image_generation'),
    }),
  },
  'POST /v1/images/edits': {
    id: 'editImage',
    tag: 'Images',
    summary: 'Change images, or make one from others',
    body: 'ImageEditRequest',
    form: imageEditForm,
    files: ['image', 'mask'],
    examples: {
      whole: {
        summary: 'An image by its data',
        value: { model: 'demo-image', prompt: 'Make it red', images: [{ image_url: PIXEL }] },
      },
    },
    answers: answered('The images, in base64. With `stream: true`: server-sent events.', images, {
      stream: imageEvents('image_edit'),
    }),
  },
  'POST /v1/audio/speech': {
    id: 'createSpeech',
    tag: 'Audio',
    summary: 'Speak a text',
    body: 'SpeechRequest',
    examples: {
      bytes: { summary: 'Audio', value: { model: 'demo-speech', input: 'Hello there.' } },
      events: {
        summary: 'Audio in events',
        value: { model: 'demo-speech', input: 'Hello there.', stream_format: 'sse' },
      },
    },
    answers: {
      200: {
        description: 'Audio. With `stream_format: "sse"`: server-sent events.',
        content: { ...audio, 'text/event-stream': speechEvent },
      },
    },
  },
  'POST /v1/audio/transcriptions': {
    id: 'createTranscription',
    tag: 'Audio',
    summary: 'Transcribe audio',
    description: 'A form has a file, a JSON body the address of one.',
    body: 'TranscriptionRequest',
    files: ['file'],
    examples: {
      text: { summary: 'A transcript', value: { model: 'demo-transcribe', file: WAV } },
      subtitles: { summary: 'Subtitles', value: { model: 'demo-transcribe', file: WAV, response_format: 'srt' } },
    },
    answers: {
      200: {
        description: 'The transcript. With `stream: true`: server-sent events.',
        content: { ...written, 'text/event-stream': transcriptEvent },
      },
    },
  },
  'POST /v1/audio/translations': {
    id: 'createTranslation',
    tag: 'Audio',
    summary: 'Transcribe audio in English',
    description: 'A form has a file, a JSON body the address of one.',
    body: 'TranslationRequest',
    files: ['file'],
    examples: { text: { summary: 'A transcript', value: { model: 'demo-transcribe', file: WAV } } },
    answers: { 200: { description: 'The transcript.', content: written } },
  },
  'POST /v1/videos': {
    id: 'createVideo',
    tag: 'Videos',
    summary: 'Begin to make a video',
    description: 'The job outlives the request: read it until its status is final, or name a `callback_url`.',
    headers: {
      'idempotency-key': {
        description: 'Makes a repeated request return the first video.',
        schema: { maxLength: 255 },
      },
    },
    body: 'VideoRequest',
    files: ['image', 'last_frame', 'input_reference', 'reference_images'],
    examples: {
      text: { summary: 'A film from a text', value: { model: 'demo-video', prompt: 'A cat purrs', seconds: 4 } },
      frame: {
        summary: 'A film from its first frame',
        value: { model: 'demo-video', prompt: 'It turns', seconds: '4', image: { image_url: PIXEL } },
      },
    },
    answers: answered('The job.', video, { links: ['getVideo', 'downloadVideo', 'deleteVideo'] }),
  },
  'GET /v1/videos': {
    id: 'listVideos',
    tag: 'Videos',
    summary: 'List the videos of the project',
    query: cursor,
    answers: answered('Videos.', named('VideoList', listOf(video))),
  },
  'GET /v1/videos/{id}': {
    id: 'getVideo',
    tag: 'Videos',
    summary: 'Read a video',
    path: one,
    answers: answered('The video.', video),
  },
  'DELETE /v1/videos/{id}': {
    id: 'deleteVideo',
    tag: 'Videos',
    summary: 'Cancel a video that is being made, or remove it',
    path: one,
    answers: answered(
      'The canceled video, or a note that it is removed.',
      s.either(video, s.open({ id: s.string(), object: constant('video.deleted'), deleted: constant(true) })),
    ),
  },
  'GET /v1/videos/{id}/content': {
    id: 'downloadVideo',
    tag: 'Videos',
    summary: 'Download the film of a video',
    path: one,
    headers: range,
    query: { variant: { description: 'Only `video` is kept.', example: 'video' } },
    answers: film,
    also: [416, 502],
  },
  'GET /v1/videos/logs/{log_id}/content': {
    id: 'downloadVideoByLogId',
    tag: 'Videos',
    summary: 'Download a film by the signed address in its job',
    path: { log_id: { description: 'The log id of the request.' } },
    headers: range,
    query: { token: { description: 'Stands in place of a key.', schema: { type: 'string', minLength: 1 } } },
    answers: film,
    also: [416, 502],
  },
}
