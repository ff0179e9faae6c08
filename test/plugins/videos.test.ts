/** The wires of videos: what they send, and what they read of a job, row by row. */
import t from 'tap'
import { plugin as bytedance } from '../../plugins/bytedance.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import type { Translator } from '../../src/core/translator.ts'
import type { VideoRequest } from '../../src/operations/videos/request.ts'
import { target } from './wire-kit.ts'

const all: readonly { readonly wire: string }[] = [...openai.wires, ...gemini.wires, ...bytedance.wires]
const wireOf = (name: string) => all.find(({ wire }) => wire === name) as Translator<'videos'>
const to = target()
const id = to.mapping.externalId
const PNG = 'iVBORw0KGgo='
const request = (changes: Partial<VideoRequest> = {}): VideoRequest => ({
  ...{ model: 'm', prompt: 'a cat', seconds: 8, size: '1280x720', audio: undefined, image: undefined },
  ...{ last_frame: undefined, reference_images: [], reference_videos: [], reference_audios: [], callback: undefined },
  ...changes,
})
const frame = { url: `data:image/png;base64,${PNG}`, type: 'image/png' } as const

t.test('creates', async t => {
  for (const [wire, changes, path, body] of [
    ['openai.videos', {}, '/videos', { model: id, prompt: 'a cat', seconds: '8', size: '1280x720' }],
    [
      'gemini.videos',
      { image: frame, negative_prompt: 'dogs' },
      `/models/${id}:predictLongRunning`,
      {
        instances: [{ prompt: 'a cat', image: { bytesBase64Encoded: PNG, mimeType: 'image/png' } }],
        parameters: {
          ...{ aspectRatio: '16:9', resolution: '720p', durationSeconds: 8, sampleCount: 1, negativePrompt: 'dogs' },
        },
      },
    ],
    [
      'gemini.vertex-videos',
      { audio: false, size: '1080x1920' },
      `/publishers/google/models/${id}:predictLongRunning`,
      { parameters: { aspectRatio: '9:16', resolution: '1080p', generateAudio: false } },
    ],
    [
      'bytedance.videos',
      { image: frame, last_frame: frame },
      '/contents/generations/tasks',
      {
        ...{ model: id, ratio: '16:9', duration: 8, resolution: '720p', watermark: false },
        content: [{ type: 'text', text: 'a cat' }, { role: 'first_frame' }, { role: 'last_frame' }],
      },
    ],
  ] as const) {
    t.match(wireOf(wire).encode(request(changes), to, false), { path, body }, wire)
  }
})

t.test('answers to a create', async t => {
  for (const [wire, answer, shows] of [
    ['openai.videos', { id: 'v1', status: 'queued', progress: 0 }, { upstreamId: 'v1', state: 'queued', progress: 0 }],
    ['gemini.videos', { name: 'models/veo/operations/a' }, { upstreamId: 'models/veo/operations/a' }],
    ['bytedance.videos', { id: 'cgt-1' }, { upstreamId: 'cgt-1', state: 'queued' }],
    ['bytedance.videos', {}, { type: 'error' }],
    ['openai.videos', { id: 'x'.repeat(1025) }, { type: 'error' }],
    ['openai.videos', { id: '..' }, { type: 'error' }],
    ['openai.videos', { id: 'a\r\nb' }, { type: 'error' }],
    ['openai.videos', { id: 'a/../b?c#d' }, { type: 'error' }],
    ['gemini.videos', { name: 'models/../../x' }, { type: 'error' }],
  ] as const) {
    const decoder = wireOf(wire).decoder('unary', to)
    t.match(decoder.frame({ data: JSON.stringify(answer) }), [shows], wire)
  }
})

t.test('questions and what they are answered', async t => {
  const uri = 'https://generativelanguage.googleapis.com/v1beta/files/a:download?alt=media'
  for (const [wire, answer, report] of [
    ['openai.videos', { status: 'in_progress', progress: 40 }, { state: 'in_progress', progress: 40 }],
    ['openai.videos', { status: 'completed', seconds: '8' }, { state: 'completed', usage: { second: 8 } }],
    ['openai.videos', { status: 'melting' }, { state: undefined }],
    [
      'openai.videos',
      { status: 'failed', error: { code: 'moderation_blocked', message: 'no' } },
      { error: { code: 'content_filter' } },
    ],
    ['gemini.videos', { name: 'a', done: false }, { state: 'in_progress' }],
    [
      'gemini.videos',
      { done: true, error: { code: 13, message: 'broken' } },
      { state: 'failed', error: { message: 'broken' } },
    ],
    [
      'gemini.videos',
      { done: true, response: { generateVideoResponse: { generatedSamples: [{ video: { uri } }] } } },
      { state: 'completed', result: { kind: 'url', url: uri } },
    ],
    [
      'gemini.videos',
      { done: true, response: { generateVideoResponse: { raiMediaFilteredReasons: ['a face'] } } },
      { state: 'failed', error: { code: 'content_filter', message: 'a face' } },
    ],
    [
      'gemini.vertex-videos',
      { done: true, response: { videos: [{ bytesBase64Encoded: 'AAAA' }] } },
      { state: 'completed', result: { kind: 'inline' } },
    ],
    [
      'gemini.vertex-videos',
      { done: true, response: { videos: [{ gcsUri: 'gs://films/a/b.mp4' }] } },
      { result: { url: 'https://storage.googleapis.com/films/a/b.mp4' } },
    ],
    [
      'bytedance.videos',
      { status: 'succeeded', content: { video_url: 'https://x.example/a' }, usage: { completion_tokens: 9 } },
      { state: 'completed', result: { url: 'https://x.example/a' }, usage: { completion: 9 } },
    ],
    ['bytedance.videos', { status: 'cancelled' }, { state: 'canceled' }],
  ] as const) {
    t.match(wireOf(wire).job!.read(JSON.stringify(answer), to), report, `${wire}: ${JSON.stringify(answer)}`)
  }
  const job = { upstreamId: 'models/veo/operations/a', params: {} }
  t.match(wireOf('gemini.videos').job!.poll(job, to), { method: 'GET', path: '/models/veo/operations/a' })
  t.match(wireOf('gemini.vertex-videos').job!.poll(job, to), { body: { operationName: job.upstreamId } })
  t.match(wireOf('openai.videos').job!.cancel!(job, to), { method: 'DELETE' })
})
