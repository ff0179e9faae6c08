/** Transcripts in every format, and lengths of files by their heads (docs/edge-cases.md#media M12, M13). */
import t from 'tap'
import { written } from '../../src/codecs/transcript/formats.ts'
import { clock, segmentsOf } from '../../src/codecs/transcript/times.ts'
import { audioSeconds, audioType, fileTypeOf } from '../../src/lib/audio-type.ts'
import { wavHead } from '../../src/lib/wav.ts'
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

t.test('the first bytes of a file give its type, and the length of some', async t => {
  const flac = Buffer.alloc(42)
  flac.write('fLaC')
  // 44,100 Hz, and 441,000 samples.
  flac.writeUIntBE(44_100 << 4, 18, 3)
  flac.writeUInt32BE(441_000, 22)
  const wav = Buffer.concat([wavHead(24_000, 48_000), Buffer.alloc(48_000)])
  const rows: [head: Buffer, size: number, extension: string | undefined, seconds: number | undefined][] = [
    [wav, wav.length, 'wav', 1],
    [wavHead(24_000), 44 + 96_000, 'wav', 2],
    [wav.subarray(0, 30), 30, 'wav', undefined],
    [flac, 1e6, 'flac', 10],
    [Buffer.from('ID3\x03rest of it'), 9, 'mp3', undefined],
    [Buffer.from('\xff\xfb\x90rest of it', 'latin1'), 9, 'mp3', undefined],
    [Buffer.from('OggSrest of it'), 9, 'ogg', undefined],
    [Buffer.from('....ftypM4A '), 9, 'm4a', undefined],
    [Buffer.from('\x1aE\xdf\xa3rest', 'latin1'), 9, 'webm', undefined],
    [Buffer.from('plain text'), 9, undefined, undefined],
    [Buffer.alloc(0), 0, undefined, undefined],
  ]
  for (const [head, size, extension, seconds] of rows) {
    t.strictSame(
      [audioType(head)?.extension, audioSeconds(head, size)],
      [extension, seconds],
      head.toString('latin1', 0, 8),
    )
  }
})

t.test('a head that lies makes no audio shorter than its file allows', t => {
  const MB = 1e6
  /** 16,000 samples a second of two bytes each, in a file of 32,044 bytes for each second. */
  const wav = (lie: (head: Buffer) => void) => {
    const head = wavHead(16_000)
    lie(head)
    return head
  }
  const chunk = (name: string, data: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(data.length)
    return Buffer.concat([Buffer.from(name), length, data])
  }
  const honest = wavHead(16_000)
  const [riff, format, data] = [honest.subarray(0, 12), honest.subarray(12, 36), honest.subarray(36)]
  const fast = Buffer.from(format)
  fast.writeUInt32LE(0xffff_ffff, 12)
  const extensible = (tag: number) => {
    const fields = Buffer.concat([format.subarray(8), Buffer.alloc(24)])
    fields.writeUInt16LE(0xfffe, 0)
    fields.writeUInt16LE(tag, 24)
    return Buffer.concat([riff, chunk('fmt ', fields), data])
  }
  const flac = (rate: number, samples: number) => {
    const head = Buffer.alloc(42)
    head.write('fLaC')
    head.writeUIntBE(rate << 4, 18, 3)
    head.writeUInt32BE(samples, 22)
    return head
  }
  /** 1,536,000 bytes a second. */
  const floor = 16
  const size = 24 * MB + 576_000
  const whole = (size - 44) / 32_000
  const rows: [says: string, head: Buffer, seconds: number | undefined][] = [
    ['WAV of unknown length', honest, whole],
    ['WAV of length 0', wav(head => head.writeUInt32LE(0, 40)), whole],
    ['WAV of one sample', wav(head => head.writeUInt32LE(2, 40)), whole],
    ['WAV with a short chunk of data before the rest', Buffer.concat([riff, format, chunk('data', data), data]), whole],
    ['WAV of many bytes a second', wav(head => head.writeUInt32LE(0xffff_ffff, 28)), whole],
    ['WAV of large blocks', wav(head => head.writeUInt16LE(0xffff, 32)), whole],
    ['WAV of fast samples', wav(head => head.writeUInt32LE(0xffff_ffff, 24)), floor],
    ['WAV of many channels', wav(head => head.writeUInt16LE(0xffff, 22)), floor],
    ['WAV of large samples', wav(head => head.writeUInt16LE(0xffff, 34)), floor],
    ['WAV of two formats', Buffer.concat([riff, format, fast, data]), (size - 68) / 32_000],
    ['WAV of two formats, the faster one first', Buffer.concat([riff, fast, format, data]), (size - 68) / 32_000],
    ['WAV of no samples a second', wav(head => head.writeUInt32LE(0, 24)), undefined],
    ['WAV that is compressed', wav(head => head.writeUInt16LE(0x55, 20)), undefined],
    ['extensible WAV', extensible(1), (size - 68) / 32_000],
    ['extensible WAV that is compressed', extensible(0x55), undefined],
    ['extensible WAV that is cut', extensible(1).subarray(0, 40), undefined],
    ['FLAC of unknown length', flac(16_000, 0), undefined],
    ['FLAC of one sample', flac(16_000, 1), floor],
    ['FLAC of fast samples', flac(0xfffff, 16_000), floor],
    ['FLAC', flac(16_000, 16_000 * 1000), 1000],
    // Of these no length is read.
    ['MP3 of one frame', Buffer.from('\xff\xfb\x90\0'.padEnd(36, '\0').concat('Xing\0\0\0\x01'), 'latin1'), undefined],
    ['Ogg of one sample', Buffer.from('OggS\0\x04\x01'.padEnd(64, '\0'), 'latin1'), undefined],
    ['MP4 of no length', Buffer.from('\0\0\0\x08ftyp\0\0\0\x6cmvhd'.padEnd(128, '\0'), 'latin1'), undefined],
    ['WebM of no length', Buffer.from('\x1aE\xdf\xa3\x44\x89\x84'.padEnd(64, '\0'), 'latin1'), undefined],
  ]
  for (const [says, head, seconds] of rows) t.equal(audioSeconds(head, size), seconds, says)
  t.end()
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
