/** Models by what becomes of any request of media for them: for the error classes of official clients. */

const operations = [
  ...['images', 'image_edits', 'speech', 'transcriptions', 'translations', 'moderations', 'rerank'],
] as const
const wires = {
  images: 'openai.images',
  image_edits: 'openai.image-edits',
  speech: 'openai.speech',
  transcriptions: 'openai.transcriptions',
  translations: 'openai.translations',
  moderations: 'openai.moderations',
  rerank: 'cohere.rerank',
}
const free = {
  ...{ prompt: '0', completion: '0', output_audio: '0', request: '0', input_audio_hour: '0' },
  per_image: { default: '0' },
}
const model = (id: string, served: readonly string[] = operations) => ({
  ...{ id, name: id, family: 'test', input: ['text', 'image', 'audio'], output: ['text'] },
  operations: served,
})

/** `fine` is answered by the demo; what the others are refused with is what they are called by. */
export const outcomes = {
  models: [
    ...['fine', 'unpriced', 'unreachable', 'small-files'].map(id => model(id)),
    model('other-endpoint', ['ocr']),
  ],
  providers: {
    demo: {
      base_url: '$' + '{GATEWAY_DEMO_URL}',
      auth: { scheme: 'none' },
      wires,
      models: [
        { model: 'fine', pricing: free, supports: ['streaming', 'vision', 'timestamps'] },
        { model: 'small-files', pricing: free, max_file: '1KiB' },
        { model: 'unpriced' },
        { model: 'other-endpoint', wires: { ocr: 'mistral.ocr' }, pricing: { ocr_page: '0' } },
      ],
    },
    nowhere: { base_url: 'http://127.0.0.1:9/v1', wires, models: [{ model: 'unreachable', pricing: free }] },
  },
}

/** The groups of endpoints whose rate is limited, with a rate of one in a minute. */
export const slowEndpoints = Object.fromEntries(
  ['images', 'speech', 'transcriptions', 'moderations', 'rerank'].map(name => [name, { ratelimit: { rpm: 1 } }]),
)
