/** How each wire of media answers: the same image, audio, words or ranking, in its own shape. */
import type { ServerResponse } from 'node:http'
import { wavHead } from '../../../src/lib/wav.ts'
import type { Received } from '../../helpers/scripted.ts'

type Tree = Record<string, unknown>
type Played = Buffer | Tree

export interface MediaWire {
  readonly op: string
  readonly wire: string
  /** Tells models of one wire apart. */
  readonly kind?: string
  /** The model's id at the provider. */
  readonly id?: string
  readonly mapping?: Tree
  /** What tokens cost by it, where it reports them: a price, and the charge. */
  readonly tokens?: { readonly pricing: Tree; readonly cost: string }
  /** Bytes are answered as what `type` says, else as JSON. */
  play(got: Received, origin: string): Played
  readonly type?: string
}

export const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(24, 7)])
const b64 = png.toString('base64')
export const samples = Buffer.alloc(480, 3)
export const wav = Buffer.concat([wavHead(24_000, samples.length), samples])

const drawn = (got: Received): Tree => {
  const { n = 1 } = (got.json ?? {}) as { n?: number }
  return { data: Array.from({ length: n }, () => ({ b64_json: b64 })) }
}
const inline = (mimeType: string, bytes: Buffer, modality: string): Tree => ({
  candidates: [
    {
      content: { role: 'model', parts: [{ inlineData: { mimeType, data: bytes.toString('base64') } }] },
      finishReason: 'STOP',
    },
  ],
  usageMetadata: {
    promptTokenCount: 10,
    candidatesTokenCount: 100,
    totalTokenCount: 110,
    candidatesTokensDetails: [{ modality, tokenCount: 100 }],
  },
})
const drawnTokens = { pricing: { prompt: '5', image_output: '40' }, cost: '0.00405' }
const spokenTokens = { pricing: { prompt: '5', output_audio: '10' }, cost: '0.00105' }
const usage = {
  input_tokens: 10,
  output_tokens: 100,
  total_tokens: 110,
  input_tokens_details: { image_tokens: 0, text_tokens: 10 },
}

const images: readonly MediaWire[] = [
  { op: 'images', wire: 'openai.images', tokens: drawnTokens, play: got => ({ ...drawn(got), usage }) },
  ...['gemini.images', 'gemini.vertex-images'].map(wire => ({
    op: 'images',
    wire,
    id: 'gemini-3-image',
    tokens: drawnTokens,
    play: () => inline('image/png', png, 'IMAGE'),
  })),
  {
    op: 'images',
    wire: 'vertex.imagen',
    play: ({ json }) => {
      const { sampleCount = 1 } = (json as { parameters: { sampleCount?: number } }).parameters
      return {
        predictions: Array.from({ length: sampleCount }, () => ({ bytesBase64Encoded: b64, mimeType: 'image/png' })),
      }
    },
  },
  { op: 'images', wire: 'xai.images', play: drawn },
  {
    op: 'images',
    wire: 'bedrock.images',
    kind: 'Nova',
    id: 'amazon.nova-canvas-v1:0',
    play: ({ json }) => {
      const { numberOfImages = 1 } = (json as { imageGenerationConfig: { numberOfImages?: number } })
        .imageGenerationConfig
      return { images: Array.from({ length: numberOfImages }, () => b64) }
    },
  },
  {
    op: 'images',
    wire: 'bedrock.images',
    kind: 'Stability',
    id: 'stability.sd3-5-large-v1:0',
    play: () => ({ images: [b64], seeds: [1], finish_reasons: [null] }),
  },
  {
    op: 'images',
    wire: 'bfl.images',
    id: 'flux-2-pro',
    type: 'image/png',
    play: ({ method, path }, origin) => {
      if (method === 'POST') return { id: 'j', polling_url: `${origin}/bfl-images/job?id=j` }
      return path.endsWith('.png') ? png : { status: 'Ready', result: { sample: `${origin}/bfl-images/a.png` } }
    },
  },
]

const SOUND = 'audio/L16;codec=pcm;rate=24000'
/** What the wire was asked for, as far as its form tells. */
const isPlain = ({ path, json }: Received): boolean =>
  (json as Tree).response_format === 'pcm' || /pcm_|container=none/.test(path)
const audioOf = (got: Received): Buffer => (isPlain(got) ? samples : wav)

const speech: readonly MediaWire[] = [
  { op: 'speech', wire: 'openai.speech', play: audioOf, type: 'audio/wav' },
  ...['gemini.speech', 'gemini.vertex-speech'].map(wire => ({
    op: 'speech',
    wire,
    tokens: spokenTokens,
    play: () => inline(SOUND, samples, 'AUDIO'),
  })),
  { op: 'speech', wire: 'elevenlabs.speech', play: audioOf, type: 'audio/wav' },
  { op: 'speech', wire: 'deepgram.speech', play: audioOf, type: 'audio/wav' },
]

const text = 'Hello there.'
const words = [
  {
    word: 'Hello',
    punctuated_word: 'Hello',
    text: 'Hello',
    type: 'word',
    start: 0,
    end: 1,
    speaker: 0,
    speaker_id: 's',
  },
  {
    word: 'there.',
    punctuated_word: 'there.',
    text: 'there.',
    type: 'word',
    start: 1,
    end: 2,
    speaker: 0,
    speaker_id: 's',
  },
]
const segments = [{ id: 0, start: 0, end: 2, text, speaker: 'A', speaker_id: 's' }]
const openAiTranscript = { text, language: 'english', duration: 3.6, segments }
const timed = { supports: ['timestamps', 'diarization'] }

const transcriptions: readonly MediaWire[] = [
  { op: 'transcriptions', wire: 'openai.transcriptions', mapping: timed, play: () => openAiTranscript },
  {
    op: 'transcriptions',
    wire: 'deepgram.transcriptions',
    mapping: timed,
    play: () => ({
      metadata: { duration: 3.6, channels: 1 },
      results: { channels: [{ detected_language: 'en', alternatives: [{ transcript: text, words }] }] },
    }),
  },
  {
    op: 'transcriptions',
    wire: 'elevenlabs.transcriptions',
    mapping: timed,
    play: () => ({ language_code: 'eng', text, words, audio_duration_secs: 3.6 }),
  },
  {
    op: 'transcriptions',
    wire: 'mistral.transcriptions',
    mapping: timed,
    play: () => ({ model: 'm', text, language: 'en', segments, usage: { prompt_audio_seconds: 3.6 } }),
  },
  { op: 'translations', wire: 'openai.translations', mapping: timed, play: () => openAiTranscript },
]

const small: readonly MediaWire[] = [
  {
    op: 'moderations',
    wire: 'openai.moderations',
    mapping: { supports: ['vision'] },
    play: () => ({ results: [{ flagged: true, categories: { sexual: true }, category_scores: { sexual: 0.5 } }] }),
  },
  {
    op: 'moderations',
    wire: 'mistral.moderations',
    play: () => ({ results: [{ categories: { sexual: true }, category_scores: { sexual: 0.5 } }] }),
  },
  ...['cohere', 'jina', 'voyage', 'bedrock'].map(vendor => ({
    op: 'rerank',
    wire: `${vendor}.rerank`,
    play: () => {
      const score = vendor === 'bedrock' ? 'relevanceScore' : 'relevance_score'
      const list = [
        { index: 1, [score]: 0.75 },
        { index: 0, [score]: 0.5 },
      ]
      return {
        [vendor === 'voyage' ? 'data' : 'results']: list,
        usage: { total_tokens: 40 },
        meta: { billed_units: { search_units: 1 } },
      }
    },
    ...(/jina|voyage/.test(vendor) && { tokens: { pricing: { prompt: '50' }, cost: '0.002' } }),
  })),
  {
    op: 'ocr',
    wire: 'mistral.ocr',
    play: () => ({
      pages: [{ index: 0, markdown: '# A', images: [], dimensions: { dpi: 1, height: 1, width: 1 } }],
      usage_info: { pages_processed: 1, doc_size_bytes: 9 },
    }),
  },
]

export const mediaWires: readonly MediaWire[] = [...images, ...speech, ...transcriptions, ...small]

/** A provider that is all of them: the first part of the path says which. */
export function play(res: ServerResponse, got: Received, origin: string, of: ReadonlyMap<string, MediaWire>): void {
  const row = of.get(got.path.split('/')[1]!)!
  const answer = row.play(got, origin)
  const [type, body] = Buffer.isBuffer(answer) ? [row.type!, answer] : ['application/json', JSON.stringify(answer)]
  res.writeHead(200, { 'content-type': type }).end(body)
}
