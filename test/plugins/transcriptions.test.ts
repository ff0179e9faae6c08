/** The transcription wires: what each sends and reads, whole and streamed (docs/contract.md#transcriptions). */
import t from 'tap'
import { plugin as deepgram } from '../../plugins/deepgram.ts'
import { plugin as elevenlabs } from '../../plugins/elevenlabs.ts'
import { plugin as mistral } from '../../plugins/mistral.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import { Upload } from '../../src/lib/body.ts'
import type { Transcript, TranscriptionRequest } from '../../src/operations/transcriptions/request.ts'
import { target } from './wire-kit.ts'

type Wire = Translator<'transcriptions'>
const wires = new Map<string, Wire>()
for (const { wires: all } of [openai, mistral, deepgram, elevenlabs]) {
  for (const wire of all)
    if (wire.op === 'transcriptions' || wire.op === 'translations') wires.set(wire.wire, wire as Wire)
}
const pieces = [Buffer.from('RIFF'), Buffer.from('sound')]
const request = (more: Partial<TranscriptionRequest> = {}): TranscriptionRequest => ({
  model: 'acme-hear',
  file: new Upload(pieces, '', ''),
  fileType: { extension: 'wav', contentType: 'audio/wav' },
  url: undefined,
  seconds: undefined,
  language: undefined,
  prompt: undefined,
  response_format: 'json',
  temperature: undefined,
  timestamp_granularities: [],
  include: [],
  chunking_strategy: undefined,
  known_speaker_names: [],
  known_speaker_references: [],
  stream: false,
  diarize: false,
  filler_words: false,
  keyterm: [],
  ...more,
})
const HOURLY = { rates: { input_audio_hour: 360_000_000_000n }, tiers: [] }
type Names = Parameters<Set<string>['add']>[0][]
const offer = (...supports: Names): Target =>
  target({ mapping: { externalId: 'hear-1', supports: new Set(supports) as never } })
const hourly = (...supports: Names): Target => ({ ...offer(...supports), price: HOURLY })
const url = 'https://a.example/a.mp3'
const remote = { file: undefined, fileType: undefined, url }

t.test('each wire asks in its own words, and sends the pieces of the file as they are', async t => {
  const form = [{ name: 'file', filename: 'audio.wav', contentType: 'audio/wav', pieces }]
  const openAi = (more: object = {}) => ({ model: 'hear-1', response_format: 'json', ...more })
  const query = 'model=hear-1&smart_format=true&punctuate=true&utterances=true'
  const rows: [wire: string, input: Partial<TranscriptionRequest>, to: Target, sent: object][] = [
    ['openai.transcriptions', {}, offer(), { path: '/audio/transcriptions', body: openAi(), files: form }],
    [
      'openai.transcriptions',
      { response_format: 'srt', language: 'de', prompt: 'p', temperature: 0.5, timestamp_granularities: ['word'] },
      offer('timestamps'),
      {
        path: '/audio/transcriptions',
        body: {
          ...openAi({ response_format: 'verbose_json', language: 'de', prompt: 'p', temperature: 0.5 }),
          'timestamp_granularities[]': ['word'],
        },
        files: form,
      },
    ],
    ['openai.transcriptions', {}, hourly('timestamps'), { body: openAi({ response_format: 'verbose_json' }) }],
    ['openai.transcriptions', {}, hourly(), { body: openAi() }],
    [
      'openai.transcriptions',
      { diarize: true, known_speaker_names: ['a'], chunking_strategy: 'auto', include: ['logprobs'] },
      offer('diarization'),
      {
        body: {
          ...openAi({ response_format: 'diarized_json', chunking_strategy: 'auto' }),
          'known_speaker_names[]': ['a'],
          'include[]': ['logprobs'],
        },
      },
    ],
    ['openai.translations', { language: 'de' }, offer(), { path: '/audio/translations', body: openAi(), files: form }],
    [
      'mistral.transcriptions',
      { response_format: 'vtt', keyterm: ['x'] },
      offer(),
      { body: { model: 'hear-1', timestamp_granularities: ['segment'], context_bias: ['x'] }, files: form },
    ],
    ['mistral.transcriptions', remote, offer(), { body: { model: 'hear-1', file_url: url }, files: [] }],
    [
      'elevenlabs.transcriptions',
      { diarize: true, language: 'de' },
      offer(),
      {
        path: '/speech-to-text',
        body: { model_id: 'hear-1', timestamps_granularity: 'word', language_code: 'de', diarize: true },
        files: form,
      },
    ],
    ['elevenlabs.transcriptions', remote, offer(), { body: { source_url: url }, files: [] }],
    [
      'deepgram.transcriptions',
      { keyterm: ['a', 'b'], filler_words: true },
      offer(),
      {
        path: `/listen?${query}&detect_language=true&filler_words=true&keyterm=a&keyterm=b`,
        bytes: pieces,
        headers: { 'content-type': 'audio/wav' },
      },
    ],
    [
      'deepgram.transcriptions',
      { ...remote, language: 'de', response_format: 'diarized_json' },
      offer(),
      { path: `/listen?${query}&language=de&diarize=true`, body: { url } },
    ],
  ]
  for (const [wire, input, to, sent] of rows) {
    t.match(wires.get(wire)!.encode(request(input), to, false), sent, `${wire} ${JSON.stringify(Object.keys(input))}`)
  }
  t.match(wires.get('openai.transcriptions')!.encode(request({ stream: true }), offer(), true).body, { stream: true })
  t.notOk('stream' in wires.get('openai.translations')!.encode(request({ stream: true }), offer(), true).body)
})

const bodyOf = (wire: string, input: Partial<TranscriptionRequest>) =>
  wires.get(wire)!.encode(request(input), offer(), false).body as Record<string, unknown>

t.test('a language has the form that its wire takes', t => {
  const rows: [given: string, short: string, regional: string][] = [
    ['de-CH', 'de', 'de-CH'],
    ['deu', 'de', 'de'],
    ['EN', 'en', 'en'],
    ['fil', 'fil', 'fil'],
    ['cmn-Hant-TW', 'zh', 'zh-Hant-TW'],
  ]
  for (const [language, short, regional] of rows) {
    t.equal(bodyOf('openai.transcriptions', { language }).language, short)
    t.equal(bodyOf('mistral.transcriptions', { language }).language, short)
    t.equal(bodyOf('elevenlabs.transcriptions', { language }).language_code, short)
    const { path } = wires.get('deepgram.transcriptions')!.encode(request({ language }), offer(), false)
    t.equal(new URLSearchParams(path.split('?')[1]).get('language'), regional)
  }
  t.end()
})

t.test("Mistral's wire is asked for what it takes together", t => {
  const rows: [input: Partial<TranscriptionRequest>, sent: object][] = [
    [{ language: 'de' }, { language: 'de' }],
    [{ language: 'de', response_format: 'srt' }, { timestamp_granularities: ['segment'] }],
    [
      { language: 'de', response_format: 'verbose_json', timestamp_granularities: ['segment', 'word'] },
      { timestamp_granularities: ['word'] },
    ],
    [{ diarize: true }, { diarize: true, timestamp_granularities: ['segment'] }],
    [{ response_format: 'diarized_json' }, { diarize: true, timestamp_granularities: ['segment'] }],
    [
      { diarize: true, response_format: 'verbose_json', timestamp_granularities: ['word'] },
      { diarize: true, timestamp_granularities: ['segment'] },
    ],
    [{ keyterm: ['New York', ' a, b '] }, { context_bias: ['New_York', 'a_b'] }],
  ]
  for (const [input, sent] of rows) t.strictSame(bodyOf('mistral.transcriptions', input), { model: 'hear-1', ...sent })
  const words = ['Hi', 'there.'].map((text, at) => ({ text: ` ${text}`, start: at, end: at + 1 }))
  const asked = { response_format: 'verbose_json', timestamp_granularities: ['word'] } as const
  const heard = decode('mistral.transcriptions', [{ text: 'Hi there.', segments: words }], offer(), asked)
  t.strictSame(transcriptOf(heard)?.segments, undefined)
  t.strictSame(
    transcriptOf(heard)?.words?.map(({ word, start, end }) => [word, start, end]),
    [
      ['Hi', 0, 1],
      ['there.', 1, 2],
    ],
  )
  t.end()
})

t.test('terms that ElevenLabs refuses are left out', t => {
  const keyterm = ['New York', 'x'.repeat(50), 'one two three four five six']
  t.strictSame(bodyOf('elevenlabs.transcriptions', { keyterm }).keyterms, ['New York'])
  t.notOk('keyterms' in bodyOf('elevenlabs.transcriptions', { keyterm: keyterm.slice(1) }))
  t.end()
})

t.test("a model that tells speakers apart gets a chunking strategy on OpenAI's wire", t => {
  const strategyAt = (wire: string, to: Target, more: Partial<TranscriptionRequest> = {}) =>
    wires.get(wire)!.encode(request(more), to, false).body.chunking_strategy
  t.equal(strategyAt('openai.transcriptions', offer('diarization'), { diarize: true }), 'auto')
  t.equal(strategyAt('openai.transcriptions', offer('diarization')), 'auto', 'also where no speakers are wanted')
  const own = { type: 'server_vad' }
  t.equal(strategyAt('openai.transcriptions', offer('diarization'), { chunking_strategy: own }), own)
  t.equal(strategyAt('openai.transcriptions', offer()), undefined)
  t.equal(strategyAt('openai.translations', offer('diarization')), undefined)
  t.end()
})

function decode(
  wire: string,
  frames: readonly unknown[],
  to: Target,
  more: Partial<TranscriptionRequest> = {},
  stream = false,
) {
  const decoder = wires.get(wire)!.decoder(stream ? 'stream' : 'unary', to, request(more))
  return [...frames.flatMap(frame => decoder.frame({ data: JSON.stringify(frame) })), ...decoder.end()]
}
const transcriptOf = (events: Event[]) =>
  events.flatMap(event => (event.type === 'result' ? [event.value as Transcript] : []))[0]
const usageOf = (events: Event[]) => events.flatMap(event => (event.type === 'usage' ? [event.usage] : [])).at(-1)
const failure = (events: Event[]) => events.flatMap(event => (event.type === 'error' ? [event.error.status] : []))

t.test('each wire reads text, times, speakers and what was counted', async t => {
  const tokens = { type: 'tokens', input_tokens: 14, input_token_details: { audio_tokens: 12 }, output_tokens: 45 }
  const openAi = decode('openai.transcriptions', [{ text: 'Hi', usage: tokens }], offer())
  t.match(transcriptOf(openAi), { text: 'Hi' })
  t.strictSame(usageOf(openAi), { prompt: 14, completion: 45, input_audio: 12 })
  const verbose = {
    text: 'Hi',
    language: 'english',
    duration: 36,
    segments: [{ start: 0, end: 1, text: ' Hi', seek: 3 }],
  }
  const timed = decode('openai.transcriptions', [verbose], hourly('timestamps'))
  t.match(transcriptOf(timed), { language: 'english', duration: 36, segments: [{ start: 0, end: 1, text: ' Hi' }] })
  t.strictSame(usageOf(timed), { input_audio_hour: 0.01 })
  const utterance = { start: 0, end: 2, transcript: 'Hi.', speaker: 1 }
  const word = { word: 'hi', punctuated_word: 'Hi.', start: 0, end: 2, speaker: 1 }
  const channel = (transcript: string) => ({ detected_language: 'en', alternatives: [{ transcript, words: [word] }] })
  const heard = decode(
    'deepgram.transcriptions',
    [{ metadata: { duration: 3.6 }, results: { channels: [channel('Hi.'), channel('Yo.')], utterances: [utterance] } }],
    hourly(),
  )
  t.match(transcriptOf(heard), {
    ...{ text: 'Hi.\nYo.', language: 'en', duration: 3.6 },
    segments: [{ text: 'Hi.', speaker: '1' }],
    words: [{ word: 'Hi.', speaker: '1' }, {}],
  })
  t.strictSame(usageOf(heard), { input_audio_hour: 0.001 })
  const spoken = ['Hi', ' ', 'there'].map((text, at) => ({
    ...{ text, start: at, end: at + 1, speaker_id: 'speaker_0' },
    type: text === ' ' ? 'spacing' : 'word',
  }))
  const eleven = decode(
    'elevenlabs.transcriptions',
    [{ text: ' Hi there', language_code: 'eng', words: spoken, audio_duration_secs: 7.2 }],
    hourly(),
  )
  t.match(transcriptOf(eleven), { text: 'Hi there', language: 'eng', words: [{ word: 'Hi' }, { word: 'there' }] })
  t.strictSame(usageOf(eleven), { input_audio_hour: 0.002 })
  const voxtral = {
    text: 'Hi',
    segments: [{ text: 'Hi', start: 0, end: 1, speaker_id: 's' }],
    usage: { prompt_audio_seconds: 18 },
  }
  const mist = decode('mistral.transcriptions', [voxtral], hourly())
  t.match(transcriptOf(mist), { text: 'Hi', segments: [{ speaker: 's' }] })
  t.strictSame(usageOf(mist), { input_audio_hour: 0.005 })
})

t.test('hours are those of the provider, of the head of the file, of the last word, or of the bytes', async t => {
  const of = (answer: object, more: Partial<TranscriptionRequest> = {}) =>
    usageOf(decode('openai.transcriptions', [{ text: 'Hi', ...answer }], hourly('timestamps'), more))?.input_audio_hour
  t.equal(of({ duration: 36 }, { seconds: 72 }), 0.01)
  t.equal(of({ usage: { type: 'duration', seconds: 36 } }, { seconds: 72 }), 0.01)
  t.equal(of({}, { seconds: 72 }), 0.02)
  t.equal(of({ words: [{ word: 'Hi', start: 0, end: 18 }] }), 0.005)
  t.equal(of({ words: [{ word: 'Hi', start: 0, end: 18 }] }, { seconds: 72 }), 0.02)
  t.equal(of({ words: [{ word: 'Hi', start: 0, end: 3600 }] }, { seconds: 1 }), 1, 'of a head that says less')
  t.equal(of({}), 9 / 8000 / 3600)
})

t.test('the duration is an estimate where only the bytes give it', async t => {
  const rows: [answer: object, more: Partial<TranscriptionRequest>, estimated: true | undefined][] = [
    [{ duration: 36 }, {}, undefined],
    [{}, { seconds: 72 }, undefined],
    [{ words: [{ word: 'Hi', start: 0, end: 18 }] }, {}, undefined],
    [{}, {}, true],
  ]
  for (const [answer, more, estimated] of rows) {
    const [event] = decode('openai.transcriptions', [{ text: 'Hi', ...answer }], hourly('timestamps'), more)
    t.equal(event?.type === 'usage' ? event.estimated : 'no usage', estimated, JSON.stringify([answer, more]))
  }
  const [tokens] = decode('openai.transcriptions', [{ text: 'Hi' }], offer())
  t.strictSame(tokens, { type: 'usage', usage: {} }, 'no hours where they have no price')
})

t.test('tokens that have a price are estimated where the provider counts none', async t => {
  const byToken: Target = { ...offer('streaming'), price: { rates: { prompt: 1n, completion: 1n }, tiers: [] } }
  const heard = (seconds: number) => ({ prompt: 10 * seconds, input_audio: 10 * seconds, completion: 3 })
  const answer = { text: 'Hello there' }
  const done = { type: 'transcript.text.done', ...answer }
  const rows: [events: Event[], seconds: number][] = [
    [decode('openai.transcriptions', [answer], byToken, { seconds: 7 }), 7],
    [decode('openai.transcriptions', [{ ...answer, duration: 4 }], byToken, { seconds: 7 }), 4],
    [decode('openai.transcriptions', [done], byToken, { seconds: 7, stream: true }, true), 7],
    [decode('mistral.transcriptions', [{ ...answer, usage: { prompt_audio_seconds: 5 } }], byToken), 5],
  ]
  for (const [[event], seconds] of rows) t.strictSame(event, { type: 'usage', usage: heard(seconds), estimated: true })
  const usage = { input_tokens: 1, output_tokens: 2 }
  t.strictSame(usageOf(decode('openai.transcriptions', [{ ...answer, usage }], byToken)), { prompt: 1, completion: 2 })
})

t.test('a stream is its deltas, and ends in the whole', async t => {
  const done = { type: 'transcript.text.done', text: 'Hi there', usage: { input_tokens: 1, output_tokens: 2 } }
  const events = [
    { type: 'transcript.text.delta', delta: 'Hi' },
    { type: 'transcript.text.delta', delta: ' there' },
    done,
  ]
  const streamed = decode('openai.transcriptions', events, offer('streaming'), { stream: true }, true)
  t.strictSame(
    streamed.flatMap(event => (event.type === 'text' ? [event.text] : [])),
    ['Hi', ' there'],
  )
  t.match(transcriptOf(streamed), { text: 'Hi there' })
  t.strictSame(usageOf(streamed), { prompt: 1, completion: 2 })
  t.strictSame(failure(decode('openai.transcriptions', events.slice(0, 1), offer(), {}, true)), [502], 'cut')
  const mist = [
    { type: 'transcription.language', audio_language: 'en' },
    { type: 'transcription.text.delta', text: 'Hi' },
    { type: 'transcription.segment', text: 'Hi', start: 0, end: 1 },
    { type: 'transcription.done', text: 'Hi', usage: { prompt_audio_seconds: 36 } },
  ]
  const voxtral = decode('mistral.transcriptions', mist, hourly(), { stream: true }, true)
  t.match(transcriptOf(voxtral), { text: 'Hi', language: 'en', segments: [{ text: 'Hi' }] })
  t.strictSame(usageOf(voxtral), { input_audio_hour: 0.01 })
  t.strictSame(failure(decode('mistral.transcriptions', mist.slice(0, 2), hourly(), {}, true)), [502])
})

t.test('an answer without a text is the failure of its provider', async t => {
  for (const wire of wires.keys()) {
    t.strictSame(failure(decode(wire, [{}], offer())), [502], wire)
    t.strictSame(failure(decode(wire, [{ error: { message: 'busy', code: 503 } }], offer())), [503], wire)
  }
})
