/** The speech wires: what each sends and reads, and answers that fail (docs/contributing/edge-cases.md#media M2, M11). */
import t from 'tap'
import { plugin as deepgram } from '../../plugins/deepgram.ts'
import { plugin as elevenlabs } from '../../plugins/elevenlabs.ts'
import { plugin as gemini } from '../../plugins/gemini.ts'
import { plugin as openai } from '../../plugins/openai.ts'
import type { Event } from '../../src/core/event.ts'
import type { Target, Translator } from '../../src/core/translator.ts'
import type { Decoder } from '../../src/core/wire.ts'
import { wavHead } from '../../src/lib/wav.ts'
import type { SpeechRequest } from '../../src/operations/speech/request.ts'
import { deepFreeze, target } from './wire-kit.ts'

const wires = new Map<string, Translator<'speech'>>()
for (const { wires: all } of [openai, gemini, elevenlabs, deepgram]) {
  for (const wire of all) if (wire.op === 'speech') wires.set(wire.wire, wire as Translator<'speech'>)
}
const request = (more: Partial<SpeechRequest> = {}): SpeechRequest =>
  deepFreeze({
    model: 'acme-say',
    input: 'Hi 👋',
    characters: 4,
    voice: undefined,
    response_format: undefined,
    speed: undefined,
    instructions: undefined,
    stream_format: 'audio',
    stream: true,
    ...more,
  })
type Overrides = NonNullable<Parameters<typeof target>[0]>
const offer = (mapping: Overrides['mapping'] = {}, model: Overrides['model'] = {}): Target =>
  target({ mapping: { externalId: 'say-1', ...mapping }, model })
const streaming = { supports: new Set(['streaming'] as const) }
const characters = { tokenizer: 'characters' }

t.test('each wire asks in its own words', async t => {
  const openAi = { model: 'say-1', input: 'Hi 👋', voice: 'alloy' }
  const gemini = (voiceName: string, maxOutputTokens: number, text = 'Hi 👋') => ({
    contents: [{ role: 'user', parts: [{ text }] }],
    generationConfig: {
      responseModalities: ['AUDIO'],
      maxOutputTokens,
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } },
    },
  })
  const eleven = { text: 'Hi 👋', model_id: 'say-1' }
  const voices = { voices: { default: 'anna', alloy: 'bea' } }
  const sarah = '/text-to-speech/EXAVITQu4vr4xnSDxMaL/stream?output_format='
  const rows: [wire: string, input: SpeechRequest, to: Target, path: string, body: object][] = [
    ['openai.speech', request(), offer(), '/audio/speech', openAi],
    ['openai.speech', request(), offer(streaming), '/audio/speech', { ...openAi, stream_format: 'sse' }],
    ['openai.speech', request(), offer(streaming, characters), '/audio/speech', openAi],
    [
      'openai.speech',
      request({ voice: 'nova', speed: 2 }),
      offer(),
      '/audio/speech',
      { ...openAi, voice: 'nova', speed: 2 },
    ],
    ['openai.speech', request({ voice: 'alloy' }), offer(voices), '/audio/speech', { ...openAi, voice: 'bea' }],
    ['openai.speech', request(), offer(voices), '/audio/speech', { ...openAi, voice: 'anna' }],
    [
      'openai.speech',
      request({ voice: 'voice_1', own_voice: true }),
      offer({ voices: { '*': 'pass' } }),
      '/audio/speech',
      { ...openAi, voice: { id: 'voice_1' } },
    ],
    [
      'openai.speech',
      request({ voice: 'alloy', own_voice: true }),
      offer(voices),
      '/audio/speech',
      { ...openAi, voice: 'bea' },
    ],
    [
      'openai.speech',
      request({ voice: '*' }),
      offer({ voices: { '*': 'pass' } }),
      '/audio/speech',
      { ...openAi, voice: '*' },
    ],
    ['openai.speech', request({ instructions: 'Slow' }), offer(), '/audio/speech', { ...openAi, instructions: 'Slow' }],
    [
      'openai.speech',
      request({ instructions: 'Slow', response_format: 'opus' }),
      offer({ externalId: 'tts-1-hd' }),
      '/audio/speech',
      { ...openAi, model: 'tts-1-hd', response_format: 'opus' },
    ],
    [
      'gemini.speech',
      request({ instructions: 'Calm' }),
      offer(),
      '/models/say-1:generateContent',
      gemini('Kore', 1500 + 4 * (20 + 8), 'Calm: Hi 👋'),
    ],
    [
      'gemini.vertex-speech',
      request({ voice: 'alloy' }),
      offer({ ...voices, ...streaming }),
      '/publishers/google/models/say-1:streamGenerateContent?alt=sse',
      gemini('bea', 1500 + 4 * 20),
    ],
    ['elevenlabs.speech', request(), offer(), `${sarah}mp3_44100_128`, eleven],
    [
      'elevenlabs.speech',
      request({ voice: 'a/b', speed: 4, response_format: 'pcm' }),
      offer(),
      '/text-to-speech/a%2Fb/stream?output_format=pcm_24000',
      { ...eleven, voice_settings: { speed: 1.2 } },
    ],
    ['deepgram.speech', request(), offer(), '/speak?model=say-1&encoding=mp3', { text: 'Hi 👋' }],
    [
      'deepgram.speech',
      request({ voice: 'aura-2-zeus-en', response_format: 'pcm' }),
      offer({ externalId: 'aura-2-thalia-en' }),
      '/speak?model=aura-2-zeus-en&encoding=linear16&container=none&sample_rate=24000',
      { text: 'Hi 👋' },
    ],
    // Another generation is another model, with another price.
    ...(['aura-asteria-en', 'say-1'] as const).map((externalId): (typeof rows)[number] => [
      'deepgram.speech',
      request({ voice: 'aura-2-zeus-en' }),
      offer({ externalId }),
      `/speak?model=${externalId}&encoding=mp3`,
      { text: 'Hi 👋' },
    ]),
    [
      'deepgram.speech',
      request({ voice: 'alloy' }),
      offer({ voices: { alloy: 'aura-2-zeus-en' } }),
      '/speak?model=aura-2-zeus-en&encoding=mp3',
      { text: 'Hi 👋' },
    ],
    [
      'deepgram.speech',
      request({ voice: 'nova', response_format: 'wav' }),
      offer(),
      '/speak?model=say-1&encoding=linear16&container=wav',
      { text: 'Hi 👋' },
    ],
  ]
  for (const [wire, input, to, path, body] of rows) {
    const stream = to.mapping.supports.has('streaming')
    const { output: _, ...sent } = wires.get(wire)!.encode(input, to, stream)
    t.strictSame(sent, { path, body }, `${wire} ${path}`)
  }
})

t.test('Gemini is sent a limit that honest speech stays within, for what it may speak of a prompt', t => {
  const text = 'a'.repeat(1000)
  const rows: [
    says: string,
    input: Partial<SpeechRequest>,
    mapping: Overrides['mapping'],
    limit: number,
    least: number,
  ][] = [
    ['a letter', { input: 'a' }, {}, 1508, 2],
    ['a text', { input: text }, {}, 9500, 2000],
    ['slowly', { input: text, speed: 0.5 }, {}, 16_384, 4000],
    ['with instructions', { input: 'a', instructions: text }, {}, 9508, 2],
    ['a long one of a model that is not known', { input: text.repeat(9) }, {}, 16_384, 16_384],
    ['of one that is', { input: text.repeat(9) }, { maxOutput: 16_000 }, 16_000, 16_000],
    ['less money', { input: text, max_output: 3000 }, {}, 3000, 2000],
    ['too little of it', { input: text, max_output: 10 }, {}, 2000, 2000],
  ]
  for (const [says, input, mapping, limit, least] of rows) {
    for (const wire of ['gemini.speech', 'gemini.vertex-speech']) {
      const { body, output } = wires.get(wire)!.encode(request(input), offer(mapping), false)
      t.strictSame(output, { limit, least }, says)
      t.match(body, { generationConfig: { maxOutputTokens: limit } }, says)
    }
  }
  const { output } = wires.get('gemini.speech')!.encode(request(), offer({}, characters), false)
  t.equal(output, undefined, 'what is paid by characters costs no tokens')
  t.end()
})

const soundOf = (events: Event[]): string =>
  Buffer.concat(events.flatMap(event => (event.type === 'bytes' ? [event.bytes] : []))).toString('latin1')
const usageOf = (events: Event[]) => events.flatMap(event => (event.type === 'usage' ? [event.usage] : [])).at(-1)
const typeOf = (events: Event[]) => events.flatMap(event => (event.type === 'bytes' ? [event.contentType] : []))
const failure = (events: Event[]) => events.flatMap(event => (event.type === 'error' ? [event.error.status] : []))
const all = (decoder: Decoder, frames: readonly { data?: string; bytes?: Buffer }[]): Event[] => [
  ...frames.flatMap(frame => decoder.frame({ data: '', ...frame })),
  ...decoder.end(),
]

t.test('M2 sound passes as it comes, under the type of the format that was named', async t => {
  const { bytes } = wires.get('openai.speech')!
  const chunks = ['ID3', '', 'ab', 'c'].map(text => ({ bytes: Buffer.from(text) }))
  for (const [input, said, type] of [
    [request(), 'audio/mpeg; rate=1', 'audio/mpeg'],
    [request({ response_format: 'mp3' }), 'application/octet-stream', 'audio/mpeg'],
    [request({ response_format: 'pcm' }), 'audio/l16', 'audio/pcm'],
  ] as const) {
    const events = all(bytes!.decoder(said, offer({}, characters), input), chunks)
    t.strictSame([soundOf(events), typeOf(events)], ['ID3abc', [type, undefined, undefined]], said)
    t.strictSame(events[0], { type: 'usage', usage: { prompt: 4, completion: 0 } }, 'code points, before any sound')
    t.equal(usageOf(all(bytes!.decoder(said, offer(), input), chunks)), undefined, 'tokens are not made up')
  }
  t.strictSame(failure(all(bytes!.decoder('audio/mpeg', offer(), request()), [])), [502], 'no bytes are no sound')
  for (const wire of ['openai.speech', 'elevenlabs.speech', 'deepgram.speech']) {
    const decode = (answer: object) =>
      failure(all(wires.get(wire)!.decoder('unary', offer(), request()), [{ data: JSON.stringify(answer) }]))
    t.strictSame(decode({}), [502], `${wire}: JSON is no sound`)
    t.strictSame(decode({ error: { message: 'overloaded', code: 503 } }), [503], `${wire}: an error in place of it`)
  }
})

t.test('sound in events is decoded, with the usage that they end in', async t => {
  const of = (...events: object[]) => {
    const decoder = wires.get('openai.speech')!.decoder('stream', offer(streaming), request({ response_format: 'wav' }))
    return all(
      decoder,
      events.map(event => ({ data: JSON.stringify(event) })),
    )
  }
  const delta = (text: string) => ({ type: 'speech.audio.delta', audio: Buffer.from(text).toString('base64') })
  const done = { type: 'speech.audio.done', usage: { input_tokens: 12, output_tokens: 340, total_tokens: 352 } }
  const whole = of(delta('RIFF'), { type: 'speech.audio.other' }, delta('abc'), done)
  t.strictSame([soundOf(whole), typeOf(whole)], ['RIFFabc', ['audio/wav', undefined]])
  t.strictSame(usageOf(whole), { prompt: 12, completion: 340, output_audio: 340 })
  t.strictSame(failure(of(delta('RIFF'))), [502], 'without its end it was cut')
  t.strictSame(failure(of({ type: 'error', error: { message: 'rate limit', code: 429 } }))[0], 503)
})

t.test('M11 samples of Gemini become WAV, and no odd byte of them is lost', async t => {
  const said = (text: string, mimeType: string) => ({
    parts: [{ inlineData: { mimeType, data: Buffer.from(text, 'latin1').toString('base64') } }],
  })
  const part = (text: string, usage?: object, mimeType = 'audio/L16;codec=pcm;rate=24000') => {
    const candidate = { content: said(text, mimeType), ...(usage && { finishReason: 'STOP' }) }
    return { data: JSON.stringify({ candidates: [candidate], usageMetadata: usage }) }
  }
  const tokens = {
    ...{ promptTokenCount: 3, candidatesTokenCount: 50 },
    candidatesTokensDetails: [{ modality: 'AUDIO', tokenCount: 50 }],
  }
  const decode = (mode: 'stream' | 'unary', input: SpeechRequest, frames: object[]) =>
    all(wires.get('gemini.speech')!.decoder(mode, offer(), input), frames)
  const plain = decode('stream', request({ response_format: 'pcm' }), [part('abc'), part('d', tokens)])
  t.strictSame([soundOf(plain), typeOf(plain)], ['abcd', ['audio/pcm', undefined]])
  t.strictSame(usageOf(plain), { prompt: 3, completion: 50, output_audio: 50 })
  const counts = { promptTokenCount: 3, candidatesTokenCount: 20 }
  const running = decode('stream', request(), [part('abc', counts)]).find(({ type }) => type === 'progress')
  t.match(running, { usage: { completion: 20, output_audio: 20 } }, 'what it counts while it speaks is known')
  const streamed = decode('stream', request(), [part('abc'), part('d', tokens)])
  t.equal(soundOf(streamed), `${wavHead(24_000).toString('latin1')}abcd`)
  const whole = decode('unary', request(), [part('abcd', tokens)])
  t.equal(soundOf(whole), `${wavHead(24_000, 4).toString('latin1')}abcd`)
  const slow = decode('unary', request(), [part('abcd', tokens, 'audio/L16;rate=16000')])
  t.equal(soundOf(slow), `${wavHead(16_000, 4).toString('latin1')}abcd`, 'at the rate that the provider says')
  t.strictSame(failure(decode('stream', request(), [part('abcd')])), [502], 'without a reason for its end it was cut')
  t.strictSame(failure(decode('unary', request(), [part('abcd', tokens, 'image/png')])), [502])
  const refused = { data: '{"promptFeedback":{"blockReason":"SAFETY"}}' }
  t.strictSame(failure(decode('unary', request(), [refused])), [400], 'a refusal does not fail over')
  t.strictSame(failure(decode('unary', request(), [{ data: '{}' }])), [502])
  t.strictSame(failure(decode('unary', request(), [{ data: '{"error":{"code":429,"message":"slow"}}' }]))[0], 503)
})

t.test('speech of Gemini that ends before its text is no success', async t => {
  const part = (text: string, finishReason?: string, candidatesTokenCount = 50) => {
    const inlineData = { mimeType: 'audio/L16;rate=24000', data: Buffer.from(text).toString('base64') }
    const candidates = [{ content: { parts: [{ inlineData }] }, finishReason }]
    return { data: JSON.stringify({ candidates, usageMetadata: { promptTokenCount: 3, candidatesTokenCount } }) }
  }
  const decode = (mode: 'stream' | 'unary', ...frames: object[]) =>
    all(wires.get('gemini.speech')!.decoder(mode, offer(), request({ response_format: 'pcm' })), frames)
  const codesOf = (events: Event[]) => events.flatMap(event => (event.type === 'error' ? [event.error] : []))
  for (const reason of ['OTHER', 'MAX_TOKENS']) {
    const streamed = decode('stream', part('ab'), part('c', reason))
    t.equal(soundOf(streamed), 'abc', reason)
    t.match(codesOf(streamed), [{ code: 'upstream_stream_truncated' }], reason)
    const whole = decode('unary', part('abc', reason))
    t.equal(soundOf(whole), '', `${reason}: nothing is shown of a whole answer, so that another provider may answer`)
    t.match(codesOf(whole), [{ code: 'upstream_stream_truncated', failover: true }], reason)
  }
  t.match(
    codesOf(decode('unary', part('abc', 'MAX_TOKENS', 5000))),
    [{ billed: true }],
    'what has cost much is charged',
  )
  t.strictSame(codesOf(decode('unary', part('abc', 'STOP'))), [])
})

t.test('a WAV head says its sizes, or that they are not known', async t => {
  const head = wavHead(24_000, 48_000)
  t.strictSame([head.length, head.toString('latin1', 0, 4), head.toString('latin1', 8, 16)], [44, 'RIFF', 'WAVEfmt '])
  t.strictSame(
    [head.readUInt32LE(4), head.readUInt32LE(24), head.readUInt32LE(28), head.readUInt32LE(40)],
    [48_036, 24_000, 48_000, 48_000],
  )
  t.strictSame([wavHead(8000).readUInt32LE(4), wavHead(8000).readUInt32LE(40)], [0xffffffff, 0xffffffff])
})

t.test('what ElevenLabs calls unauthorized may be a quota that is spent', async t => {
  const { error } = wires.get('elevenlabs.speech')!
  const of = (status: number, detail: unknown) => error(status, JSON.stringify({ detail }), offer())
  t.match(of(422, [{ loc: ['body', 'text'], msg: 'Field required', type: 'missing' }]), {
    status: 400,
    param: 'text',
    message: 'text: Field required',
  })
  t.match(of(401, { status: 'quota_exceeded', message: 'spent' }), { code: 'upstream_credential', failover: true })
  t.match(of(429, { status: 'system_busy', message: 'busy' }), { code: 'upstream_rate_limited', failover: true })
  t.match(of(422, [{ loc: ['body'], msg: 'bad text' }]), { status: 400, message: /bad text/ })
})
