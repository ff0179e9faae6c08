/** What the wire `openai.realtime` reads of usage, and how it opens sessions. */
import t from 'tap'
import { realtime } from '../../plugins/openai/realtime.ts'
import type { Target } from '../../src/core/translator.ts'

const { usage, transcriptUsage } = realtime.realtime!
const target = { mapping: { externalId: 'rt 1/x' } } as unknown as Target

t.test('a session is opened by its model, or for transcripts', async t => {
  const request = { model: 'm', transcribes: false }
  t.equal(realtime.encode(request, target, false).path, '/realtime?model=rt%201%2Fx')
  t.equal(realtime.encode({ ...request, transcribes: true }, target, false).path, '/realtime?intent=transcription')
})

t.test('usage is read by kind, and what is no count is no usage', async t => {
  const counts = { input_tokens: 100, output_tokens: 40 }
  const rows: [says: string, usage: unknown, expected: object | undefined][] = [
    ['plain', counts, { prompt: 100, completion: 40 }],
    [
      'by kind',
      {
        ...counts,
        input_token_details: {
          ...{ text_tokens: 30, audio_tokens: 50, image_tokens: 20, cached_tokens: 25 },
          cached_tokens_details: { text_tokens: 5, audio_tokens: 10, image_tokens: 10 },
        },
        output_token_details: { text_tokens: 10, audio_tokens: 30 },
      },
      {
        ...{ prompt: 100, completion: 40, input_cache_read: 25, input_audio: 50, input_audio_cache_read: 10 },
        ...{ image_input: 10, output_audio: 30 },
      },
    ],
    [
      'odd details',
      { ...counts, input_token_details: { audio_tokens: -1, cached_tokens: 'x' } },
      { prompt: 100, completion: 40 },
    ],
    [
      'details above their totals',
      {
        ...counts,
        input_token_details: {
          ...{ audio_tokens: 9e8, cached_tokens: 9e8, image_tokens: 9e8 },
          cached_tokens_details: { audio_tokens: 9e8 },
        },
        output_token_details: { audio_tokens: 9e8 },
      },
      {
        ...{ prompt: 100, completion: 40, input_cache_read: 100, input_audio: 100, input_audio_cache_read: 100 },
        ...{ image_input: 100, output_audio: 40 },
      },
    ],
    ['none', null, undefined],
    ['below zero', { input_tokens: -1, output_tokens: 1 }, undefined],
    ['text', { input_tokens: '1', output_tokens: 1 }, undefined],
    ['too much', { input_tokens: 2e9, output_tokens: 1 }, undefined],
    ['half of it', { input_tokens: 1 }, undefined],
  ]
  for (const [says, given, expected] of rows) t.strictSame(usage({ usage: given }), expected, says)
  t.strictSame(transcriptUsage({ usage: { type: 'duration', seconds: 36 } }), { input_audio_hour: 0.01 })
  t.equal(transcriptUsage({ usage: { type: 'duration', seconds: -1 } }), undefined)
  t.strictSame(transcriptUsage({ usage: { type: 'tokens', ...counts } }), { prompt: 100, completion: 40 })
  t.equal(transcriptUsage({}), undefined)
})
