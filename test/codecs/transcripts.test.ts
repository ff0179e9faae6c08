/** Transcripts in every format (docs/contributing/edge-cases.md#media M12). */
import t from 'tap'
import { clock, segmentsOf, written } from '../../src/codecs/transcript/formats.ts'
import { fileTypeOf } from '../../src/media/audio-type.ts'
import type { Transcript, TranscriptionRequest } from '../../src/operations/transcriptions/request.ts'

const asked = (response_format: TranscriptionRequest['response_format'], more: object = {}) => ({
  response_format,
  timestamp_granularities: [],
  known_speaker_names: [],
  ...more,
})
const usage = { type: 'duration', seconds: 4, cost: 0.00036 }
const body = (transcript: Transcript, format: TranscriptionRequest['response_format'], more?: object) =>
  written(transcript, asked(format, more), usage).body

const hello: Transcript = {
  text: 'Hello there. How are you?',
  language: 'english',
  duration: 3.6,
  segments: [
    { start: 0, end: 1.5, text: ' Hello there.', speaker: 'spk_7' },
    {
      start: 1.6,
      end: 3.6,
      text: ' How are you?',
      speaker: 'spk_2',
      more: { seek: 5, tokens: [1], no_speech_prob: 0.1 },
    },
  ],
}

t.test('M13 a time has milliseconds, and as many hours as it takes', async t => {
  for (const [seconds, said] of [
    [0, '00:00:00,000'],
    [1.5, '00:00:01,500'],
    [3599.9996, '01:00:00,000'],
    [359_999.9994, '99:59:59,999'],
    [360_000, '100:00:00,000'],
    [-1, '00:00:00,000'],
  ] as const) {
    t.equal(clock(seconds, ','), said)
    t.equal(clock(seconds, '.'), said.replace(',', '.'))
  }
})

t.test('a transcript is written in each format', async t => {
  t.equal(body(hello, 'text'), 'Hello there. How are you?\n')
  t.equal(
    body(hello, 'srt'),
    '1\n00:00:00,000 --> 00:00:01,500\nHello there.\n\n2\n00:00:01,600 --> 00:00:03,600\nHow are you?\n\n',
  )
  t.equal(
    body(hello, 'vtt'),
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello there.\n\n00:00:01.600 --> 00:00:03.600\nHow are you?\n\n',
  )
  t.strictSame(JSON.parse(body(hello, 'json')), { text: hello.text, language: 'english', duration: 3.6, usage })
  const unknown = { seek: 0, tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 0, no_speech_prob: 0 }
  t.strictSame(JSON.parse(body(hello, 'verbose_json')), {
    task: 'transcribe',
    language: 'english',
    duration: 3.6,
    text: hello.text,
    segments: [
      { id: 0, ...unknown, start: 0, end: 1.5, text: ' Hello there.' },
      { id: 1, ...unknown, start: 1.6, end: 3.6, text: ' How are you?', seek: 5, tokens: [1], no_speech_prob: 0.1 },
    ],
    usage,
  })
  const odd = {
    seek: '5',
    tokens: ['a'],
    temperature: {},
    avg_logprob: null,
    compression_ratio: [],
    no_speech_prob: true,
  }
  const segments = [{ start: 0, end: 1, text: 'Hi', more: odd }]
  t.match(
    JSON.parse(body({ text: 'Hi', segments }, 'verbose_json')),
    { segments: [unknown] },
    'what a provider says in another type is not passed on',
  )
  const told = (names: string[]) =>
    (JSON.parse(body(hello, 'diarized_json', { known_speaker_names: names })) as { segments: { speaker: string }[] })
      .segments
  t.strictSame(told([])[0], {
    type: 'transcript.text.segment',
    id: 'seg_0',
    start: 0,
    end: 1.5,
    speaker: 'A',
    text: 'Hello there.',
  })
  t.strictSame(
    told(['Ann']).map(({ speaker }) => speaker),
    ['Ann', 'B'],
  )
  const types = (['text', 'srt', 'vtt', 'json', 'verbose_json', 'diarized_json'] as const).map(
    format => written(hello, asked(format), usage).contentType,
  )
  const plain = ['text/plain', 'application/x-subrip', 'text/vtt'].map(type => `${type}; charset=utf-8`)
  t.strictSame(types, [...plain, 'application/json', 'application/json', 'application/json'])
})

t.test('words stand in verbose JSON when they are asked for', async t => {
  const words = [{ word: 'Hi', start: 0.00049, end: 0.5004 }]
  const of = (more: object) => JSON.parse(body({ text: 'Hi', words }, 'verbose_json', more)) as { words?: object[] }
  t.equal(of({}).words, undefined)
  t.strictSame(of({ timestamp_granularities: ['word'] }).words, [{ word: 'Hi', start: 0, end: 0.5 }])
})

t.test('M12 segments are made of words: at sentences, gaps, speakers and ten seconds', async t => {
  const of = (...words: [word: string, start: number, end: number, speaker?: string][]) =>
    segmentsOf({ text: 'x', words: words.map(([word, start, end, speaker]) => ({ word, start, end, speaker })) }).map(
      ({ text, start, end }) => [text, start, end],
    )
  t.strictSame(of(['Hi', 0, 1], ['there', 1, 2], ['.', 2, 2], ['Yes', 2, 3]), [
    ['Hi there.', 0, 2],
    ['Yes', 2, 3],
  ])
  t.strictSame(of(['a', 0, 1], ['b', 2.5, 3]).length, 2, 'a gap')
  t.strictSame(of(['a', 0, 1], ['b', 1.5, 3]).length, 1)
  t.strictSame(of(['a', 0, 1, 'x'], ['b', 1, 2, 'y'], ['c', 2, 3, 'y']), [
    ['a', 0, 1],
    ['b c', 1, 3],
  ])
  t.strictSame(of(['a', 0, 6], ['b', 6, 11]).length, 2, 'more than ten seconds')
})

t.test('M12 nothing said is written as nothing, and no text breaks its format', async t => {
  const empty = { text: '', duration: 2 }
  t.strictSame([body(empty, 'srt'), body(empty, 'vtt'), body(empty, 'text')], ['', 'WEBVTT\n\n', '\n'])
  const odd = { start: 0, end: 1, text: ' a\r\n\r\n2\n00:00:00,000 --> 00:00:09,000\n ' }
  const segments = [odd, { start: 1, end: 2, text: ' \n ' }, { start: 2, end: 3, text: 'b' }]
  t.equal(
    body({ text: 'x', segments }, 'srt'),
    '1\n00:00:00,000 --> 00:00:01,000\na\n2\n00:00:00,000 -> 00:00:09,000\n\n2\n00:00:02,000 --> 00:00:03,000\nb\n\n',
  )
  t.strictSame(segmentsOf({ text: 'Hi', duration: 2 }), [{ start: 0, end: 2, text: 'Hi' }])
})

t.test('a file goes on by its first bytes, else its extension, else what its part says', t => {
  const rows: [head: string, extension: string, contentType: string, as: [extension: string, contentType: string]][] = [
    ['fLaC', 'mp3', 'audio/ogg', ['flac', 'audio/flac']],
    ['', 'wav', 'audio/ogg', ['wav', 'audio/wav']],
    ['', 'opus', '', ['opus', 'audio/ogg']],
    ['', 'mpga', 'video/mp4', ['mpga', 'audio/mpeg']],
    ['', 'xyz', 'audio/xyz', ['xyz', 'audio/xyz']],
    ['', 'xyz', '', ['xyz', 'application/octet-stream']],
    ['', '', 'audio/ogg', ['ogg', 'audio/ogg']],
    ['', '', 'audio/x-wav', ['wav', 'audio/wav']],
    ['', '', 'video/mp4', ['mp4', 'video/mp4']],
    ['', '', 'text/plain', ['mp3', 'text/plain']],
    ['', '', '', ['mp3', 'application/octet-stream']],
  ]
  for (const [head, named, said, [extension, contentType]] of rows) {
    t.strictSame(fileTypeOf(Buffer.from(head), named, said), { extension, contentType }, `${head} ${named} ${said}`)
  }
  t.end()
})
