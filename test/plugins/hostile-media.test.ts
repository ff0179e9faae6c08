/**
 * The wires of media as a hostile provider sees them: whatever stands in an answer, it is read as one, or it is the
 * failure of its provider. Nothing of it is NaN, negative or endless where clients or prices read it.
 */
import fc from 'fast-check'
import t from 'tap'
import { plugin as bedrock } from '../../plugins/bedrock.ts'
import { plugin as bfl } from '../../plugins/bfl.ts'
import { plugin as cohere } from '../../plugins/cohere.ts'
import { plugin as deepgram } from '../../plugins/deepgram.ts'
import { plugin as elevenlabs } from '../../plugins/elevenlabs.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as jina } from '../../plugins/jina.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import { plugin as typesafe } from '../../plugins/typesafe.ts'
import { plugin as voyage } from '../../plugins/voyage.ts'
import { plugin as xai } from '../../plugins/xai.ts'
import { diarized, written } from '../../src/codecs/transcript/formats.ts'
import { costOf } from '../../src/core/cost.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import { axes, mergeUsage, type Usage } from '../../src/core/usage.ts'
import type { Decoder } from '../../src/core/wire.ts'
import { GatewayError } from '../../src/lib/error.ts'
import type { DecisionResult } from '../../src/operations/decisions/request.ts'
import type { GeneratedImages } from '../../src/operations/images/request.ts'
import type { ModerationAnswer } from '../../src/operations/moderations/request.ts'
import type { OcrResult } from '../../src/operations/ocr/request.ts'
import type { RerankResult } from '../../src/operations/rerank/request.ts'
import { type Transcript, transcriptFormats } from '../../src/operations/transcriptions/request.ts'
import { sniffImage } from '../../src/wire/wire.ts'
import { runs } from '../helpers/runs.ts'
import { target } from './wire-kit.ts'

const SEED = 20261125
const plugins = [bedrock, bfl, cohere, deepgram, elevenlabs, gemini, jina, mistral, openai, typesafe, voyage, xai]
const wires = new Map<string, Translator>(
  plugins.flatMap(({ wires }) => (wires as readonly unknown[] as Translator[]).map(wire => [wire.wire, wire] as const)),
)

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(24, 7)])
const b64 = png.toString('base64')
const audio = Buffer.alloc(48, 3).toString('base64')
const inline = (mimeType: string, data: string, modality: string) => ({
  candidates: [{ content: { parts: [{ inlineData: { mimeType, data } }] }, finishReason: 'STOP' }],
  promptFeedback: {},
  usageMetadata: {
    promptTokenCount: 10,
    candidatesTokenCount: 100,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: 10 }],
    candidatesTokensDetails: [{ modality, tokenCount: 100 }],
  },
})
const words = [
  {
    ...{ word: 'Hi', punctuated_word: 'Hi.', text: 'Hi.', type: 'word' },
    ...{ start: 0, end: 1.5, speaker: 0, speaker_id: 's' },
  },
]
const segments = [{ id: 0, start: 0, end: 1.5, text: 'Hi.', transcript: 'Hi.', speaker: 'A', speaker_id: 's', seek: 0 }]
const tokens = { type: 'tokens', input_tokens: 5, output_tokens: 6, input_token_details: { audio_tokens: 4 } }
const imageUsage = { input_tokens: 5, output_tokens: 6, input_tokens_details: { image_tokens: 1 } }
const openAiImages = {
  created: 1,
  background: 'opaque',
  data: [{ b64_json: b64, revised_prompt: 'a cat' }, { url: 'https://a.example/a.png' }],
  usage: imageUsage,
}
const ranked = [
  { index: 1, relevance_score: 0.5 },
  { index: 0, relevance_score: 0.25 },
]
const categories = { categories: { hate: true, selfharm: true }, category_scores: { hate: 0.5, selfharm: 1 } }

const imageRequest = { model: 'm', prompt: 'x', n: 2, images: [], stream: false }
const speechRequest = { model: 'm', input: 'Hi', characters: 2, stream_format: 'audio', stream: true }
const file = { size: 4000, pieces: [], contentType: '', extension: '' }
const transcriptionRequest = {
  ...{ model: 'm', file, response_format: 'json', timestamp_granularities: [] },
  ...{ known_speaker_names: [], known_speaker_references: [], include: [], keyterm: [] },
}
const questions = {
  sure: { type: 'noul', instructions: 'x' },
  pick: { type: 'choice', instructions: 'x', criteria: { a: null, b: null } },
  rate: { type: 'score', instructions: 'x', criteria: ['low', 'high'] },
}
const requests: Readonly<Record<string, object>> = {
  images: imageRequest,
  speech: speechRequest,
  transcriptions: transcriptionRequest,
  moderations: { model: 'm', input: ['a', 'b'] },
  rerank: { model: 'm', query: 'q', documents: ['a', 'b'] },
  ocr: { model: 'm', document: { type: 'document_url', document_url: 'https://a.example/a.pdf' } },
  decisions: { model: 'm', state: 'x', questions },
}

/** What each wire answers when nothing is wrong: one body, or the events of a stream. */
const answers: readonly [op: string, wire: string, frames: readonly unknown[]][] = [
  ['images', 'openai.images', [openAiImages]],
  ['images', 'xai.images', [openAiImages]],
  ['images', 'gemini.images', [inline('image/png', b64, 'IMAGE')]],
  ['images', 'gemini.vertex-images', [inline('image/png', b64, 'IMAGE')]],
  [
    'images',
    'vertex.imagen',
    [{ predictions: [{ bytesBase64Encoded: b64, prompt: 'x' }, { raiFilteredReason: 'no' }] }],
  ],
  ['images', 'bedrock.images', [{ images: [b64], seeds: [1], finish_reasons: [null], error: null }]],
  [
    'images',
    'bfl.images',
    [
      { id: '1', polling_url: 'https://api.example/v1/get_result?id=1' },
      { id: '1', status: 'Pending' },
      { id: '1', status: 'Ready', result: { sample: 'https://cdn.example/a.png' } },
    ],
  ],
  [
    'images',
    'openai.images stream',
    [
      { type: 'image_generation.partial_image', b64_json: b64, partial_image_index: 0, size: '1x1' },
      { type: 'image_generation.completed', b64_json: b64, created_at: 1, usage: imageUsage },
      { type: 'image_generation.completed', b64_json: b64, created_at: 1, usage: imageUsage },
    ],
  ],
  ['speech', 'gemini.speech', [inline('audio/L16;codec=pcm;rate=24000', audio, 'AUDIO')]],
  ['speech', 'gemini.speech stream', [inline('audio/L16;rate=24000', audio, 'AUDIO')]],
  [
    'speech',
    'openai.speech stream',
    [
      { type: 'speech.audio.delta', audio },
      { type: 'speech.audio.done', usage: { input_tokens: 5, output_tokens: 6 } },
    ],
  ],
  [
    'transcriptions',
    'openai.transcriptions',
    [{ text: 'Hi.', language: 'en', duration: 1.5, segments, words, logprobs: [], usage: tokens }],
  ],
  [
    'transcriptions',
    'openai.transcriptions stream',
    [
      { type: 'transcript.text.delta', delta: 'Hi.' },
      { type: 'transcript.text.segment', ...segments[0] },
      { type: 'transcript.text.done', text: 'Hi.', usage: tokens },
    ],
  ],
  [
    'transcriptions',
    'deepgram.transcriptions',
    [
      {
        metadata: { duration: 1.5 },
        results: {
          channels: [{ detected_language: 'en', alternatives: [{ transcript: 'Hi.', words }] }],
          utterances: segments,
        },
      },
    ],
  ],
  [
    'transcriptions',
    'elevenlabs.transcriptions',
    [{ text: 'Hi.', language_code: 'eng', words, audio_duration_secs: 1.5 }],
  ],
  [
    'transcriptions',
    'mistral.transcriptions',
    [{ text: 'Hi.', language: 'en', segments, usage: { prompt_audio_seconds: 2 } }],
  ],
  [
    'transcriptions',
    'mistral.transcriptions stream',
    [
      { type: 'transcription.language', audio_language: 'en' },
      { type: 'transcription.text.delta', text: 'Hi.' },
      { type: 'transcription.segment', ...segments[0] },
      { type: 'transcription.done', text: 'Hi.', usage: { prompt_audio_seconds: 2 } },
    ],
  ],
  [
    'moderations',
    'openai.moderations',
    [{ results: [{ flagged: true, ...categories }, categories], usage: { prompt_tokens: 3 } }],
  ],
  ['moderations', 'mistral.moderations', [{ results: [categories, categories] }]],
  ['rerank', 'cohere.rerank', [{ results: ranked, meta: { billed_units: { search_units: 1, input_tokens: 7 } } }]],
  ['rerank', 'jina.rerank', [{ results: ranked, usage: { total_tokens: 7 } }]],
  ['rerank', 'voyage.rerank', [{ data: ranked, usage: { total_tokens: 7 } }]],
  ['rerank', 'bedrock.rerank', [{ results: ranked.map(({ index }) => ({ index, relevanceScore: 0.5 })) }]],
  [
    'ocr',
    'mistral.ocr',
    [
      {
        pages: [{ index: 0, markdown: 'A' }],
        document_annotation: null,
        usage_info: { pages_processed: 1, doc_size_bytes: 9 },
      },
    ],
  ],
  [
    'decisions',
    'typesafe.decisions',
    [
      {
        answers: {
          sure: { type: 'noul', noul: 0.5 },
          pick: { type: 'choice', choice: 'a', probabilities: { a: 1, b: 0 }, confidence: 1 },
          rate: { type: 'score', score: 0.5, legend: { 0: 'low' }, probabilities: { 0: 1, 1: 0 }, confidence: null },
        },
        usage: { input_tokens: 5, output_tokens: 3 },
      },
    ],
  ],
]

/** All axes have a price, so that whatever is reported costs something. */
const rates = Object.fromEntries(axes.filter(axis => axis !== 'second').map(axis => [axis, 1000n]))
const price = { rates, tiers: [], perImage: { default: 1000n } } as NonNullable<Target['price']>
const place: Target = { ...target({ mapping: { externalId: 'm-1' } }), price }

interface Outcome {
  readonly error: GatewayError | undefined
  readonly events: readonly Event[]
}

type Read = (decoder: Decoder, data: string) => Event[]
const small: Read = (decoder, data) => decoder.frame({ data, bytes: Buffer.from(data) })

/** What becomes of frames; addresses give an image. Anything but a GatewayError is thrown. */
function outcomeOf(op: string, name: string, frames: readonly string[], read = small): Outcome {
  const [wire, mode] = name.split(' ')
  const decoder: Decoder = wires.get(wire!)!.decoder(mode ? 'stream' : 'unary', place, requests[op] as never)
  const events: Event[] = []
  try {
    for (const data of frames) {
      if (!decoder.done) events.push(...read(decoder, data))
    }
    for (let last = events.at(-1); last?.type === 'fetch'; last = events.at(-1)) {
      events.push(...decoder.frame({ data: '', bytes: png }))
    }
    events.push(...decoder.end())
  } catch (thrown) {
    if (thrown instanceof GatewayError) return { error: thrown, events }
    throw thrown
  }
  const error = events.flatMap(event => (event.type === 'error' ? [event.error] : []))[0]
  return { error, events }
}

const TIMES = /^\d{2,3}:\d\d:\d\d[,.]\d{3} --> \d{2,3}:\d\d:\d\d[,.]\d{3}$/
const isShare = (value: unknown) => typeof value === 'number' && value >= 0 && value <= 1
const textOf = (image: GeneratedImages['images'][number]) =>
  typeof image.b64 === 'string' ? image.b64 : image.b64.text()

/** Throws for a result that no client may see. */
function check(op: string, { events }: Outcome): void {
  const usage: Usage = {}
  for (const event of events) if (event.type === 'usage') mergeUsage(usage, event.usage)
  const cost = costOf(usage, price)
  const assert = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`${what}: ${JSON.stringify(events).slice(0, 2000)}`)
  }
  assert(cost !== null && cost.total >= 0n, 'the cost')
  const [value] = events.flatMap(event => (event.type === 'result' ? [event.value] : []))
  const unfinished = events.at(-1)?.type === 'wait'
  if (unfinished) return
  switch (op) {
    case 'speech':
      assert(
        events.some(event => event.type === 'bytes' && event.bytes.length > 0),
        'no audio',
      )
      break
    case 'images': {
      const { images } = value as GeneratedImages
      assert(images.length > 0 && images.length <= 2, 'images')
      assert(
        images.every(image => /^[A-Za-z0-9+/]+=*$/.test(textOf(image)) && sniffImage(textOf(image))),
        'an image',
      )
      break
    }
    case 'transcriptions': {
      const transcript = value as Transcript
      for (const response_format of transcriptFormats) {
        const request = { response_format, timestamp_granularities: ['word' as const], known_speaker_names: [] }
        const { body } = written(transcript, request, {})
        const times = response_format === 'srt' || response_format === 'vtt' ? body.match(/.* --> .*/g) : undefined
        assert(times?.every(line => TIMES.test(line)) !== false, response_format)
      }
      assert(typeof transcript.text === 'string' && diarized(transcript, []).length < 10, 'the transcript')
      const { input_audio_hour: hours = -1 } = usage
      assert(hours >= 0 && hours < 300, 'the hours')
      break
    }
    case 'moderations':
      for (const { flagged, category_scores } of (value as ModerationAnswer).results) {
        assert(typeof flagged === 'boolean' && Object.values(category_scores).every(Number.isFinite), 'a score')
      }
      break
    case 'rerank': {
      const { results } = value as RerankResult
      assert(new Set(results.map(({ index }) => index)).size === results.length, 'an index twice')
      assert(
        results.every(({ index, relevance_score: s }) => (index === 0 || index === 1) && Number.isFinite(s)),
        'a score',
      )
      break
    }
    case 'ocr': {
      const { pages_processed: pages, doc_size_bytes: size } = (value as OcrResult).usage_info
      assert(pages >= 0 && pages <= 10_000 && (size === null || size >= 0) && size !== Infinity, 'pages')
      break
    }
    default: {
      const { answers, outputTokens } = value as DecisionResult
      assert(Number.isFinite(outputTokens) && outputTokens >= 0, 'tokens')
      for (const answer of Object.values(answers)) {
        if (answer.type === 'noul') assert(isShare(answer.noul), 'noul')
        else assert(isShare(answer.confidence) && Object.values(answer.probabilities).every(isShare), 'probabilities')
      }
    }
  }
}

const text = (frames: readonly unknown[]) => frames.map(frame => JSON.stringify(frame))

/** They answer with audio, never with JSON. */
const BYTES_ONLY = new Set(['elevenlabs.speech', 'deepgram.speech'])

t.test('what is right is read by each wire', async t => {
  for (const [op, wire, frames] of answers) {
    const outcome = outcomeOf(op, wire, text(frames))
    t.equal(outcome.error, undefined, wire)
    t.doesNotThrow(() => check(op, outcome), wire)
  }
  const media = [...wires.values()].filter(({ op }) => Object.hasOwn(requests, op))
  const bare = new Set(answers.map(([, wire]) => wire.replace(' stream', '')))
  t.strictSame(
    media.flatMap(({ wire }) => (bare.has(wire) || BYTES_ONLY.has(wire) ? [] : [wire])),
    ['gemini.vertex-speech'],
    'its form is that of the other one',
  )
})

/** In JSON, which has no word for most of them: written in place of what stands there. */
const ODD = [
  ...['null', 'true', '-1', '-0.5', '0', '0.5', '1e999', '-1e999', '1e308', '9007199254740993', '""', '"x"', '"-1"'],
  ...['"NaN"', '"https://10.0.0.1/x"', '"data:image/png;base64,"', '"PHN2Zz48L3N2Zz4="', '[]', '[null]', '[[]]', '{}'],
  ...[
    '{"toString":null}',
    '{"error":{"message":"no"}}',
    '{"length":1e9}',
    '{"__proto__":{"x":1}}',
    '"\\u0000"',
    '"a\\n\\n1 --> 2"',
  ],
]
const placeholder = (index: number) => `@odd${index}@`

/** All places of a value: its members and theirs. */
function placesIn(value: unknown, path: readonly string[] = []): string[][] {
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return [[...path], ...members.flatMap(([name, member]) => placesIn(member, [...path, name]))]
}
function replaced(value: unknown, [name, ...rest]: readonly string[], by: unknown): unknown {
  if (name === undefined) return by
  if (Array.isArray(value))
    return value.map((item: unknown, at) => (String(at) === name ? replaced(item, rest, by) : item))
  const object = value as Record<string, unknown>
  return { ...object, [name]: replaced(object[name], rest, by) }
}
const asSent = (frames: readonly unknown[]) =>
  text(frames).map(json => json.replace(/"@odd(\d+)@"/g, (_, index) => ODD[Number(index)]!))

t.test('what nests without end is the failure of its provider, whatever its wire', async t => {
  const deep = `{"data":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  for (const [op, wire] of answers) t.equal(outcomeOf(op, wire, [deep]).error?.status, 502, wire)
})

for (const [op, wire, frames] of answers) {
  t.test(`whatever stands anywhere in an answer of ${wire}, it is read or refused`, async t => {
    const places = placesIn(frames).filter(path => path.length > 0)
    const wrong: string[] = []
    const tried = (sent: readonly string[]) => {
      const outcome = outcomeOf(op, wire, sent)
      if (!outcome.error) check(op, outcome)
      else if (outcome.error.status < 400) throw new Error(`status ${outcome.error.status}`)
    }
    for (const path of places) {
      for (const [index] of ODD.entries()) {
        const sent = asSent(replaced(frames, path, placeholder(index)) as unknown[])
        try {
          tried(sent)
        } catch (thrown) {
          wrong.push(`${path.join('.')} = ${ODD[index]}: ${String(thrown)}`)
        }
      }
    }
    t.strictSame(wrong.slice(0, 5), [])
    const mutation = fc.tuple(fc.nat(places.length - 1), fc.nat(ODD.length - 1))
    const many = fc.property(fc.array(mutation, { minLength: 2, maxLength: 5 }), changes => {
      let changed: unknown = frames
      for (const [at, odd] of changes) {
        const path = places[at]!
        const exists = path.reduce<unknown>(
          (value, name) =>
            typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined,
          changed,
        )
        if (exists !== undefined) changed = replaced(changed, path, placeholder(odd))
      }
      tried(asSent(changed as unknown[]))
    })
    t.doesNotThrow(() => fc.assert(many, { numRuns: runs(1000), seed: SEED }))
    const any = fc.property(fc.json(), json => tried([json]))
    t.doesNotThrow(() => fc.assert(any, { numRuns: runs(500), seed: SEED }))
  })
}
