/** Models whose providers lack a credential: refused alike at every endpoint and to every client. */
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { RealtimeClient, refusalOf } from '../helpers/realtime-client.ts'

const VARIABLE = 'ACME_SECRET_KEY'
const offer = (model: string, pricing: Record<string, string>, more: object = {}) => ({ model, pricing, ...more })
const chatting = ['streaming', 'tools', 'vision', 'json_output']
const gateway = await startGateway(t, {
  providers: {
    acme: {
      base_url: 'https://acme.example/v1',
      auth: { scheme: 'bearer', secret: `\${${VARIABLE}}` },
      wires: {
        chat: 'openai.chat',
        embeddings: 'openai.embeddings',
        images: 'openai.images',
        image_edits: 'openai.image-edits',
        moderations: 'openai.moderations',
        ocr: 'mistral.ocr',
        rerank: 'cohere.rerank',
        decisions: 'typesafe.decisions',
        speech: 'openai.speech',
        transcriptions: 'openai.transcriptions',
        translations: 'openai.translations',
        videos: 'openai.videos',
        realtime: 'openai.realtime',
      },
      models: [
        offer('chat', { prompt: '1', completion: '1' }, { supports: chatting }),
        offer('vectors', { prompt: '1' }),
        offer('painter', { image: '0.01' }),
        offer('judge', { request: '0.01' }),
        offer('reader', { ocr_page: '0.01' }),
        offer('ranker', { request: '0.01' }),
        offer('decider', { prompt: '1' }),
        offer('speaker', { prompt: '1', output_audio: '1' }),
        offer('hearer', { input_audio_hour: '0.01' }),
        offer('film', { request: '0.01' }),
        offer(
          'voice',
          { prompt: '4', completion: '16', input_audio: '32', output_audio: '64' },
          { supports: ['realtime'] },
        ),
      ],
    },
  },
  models: [
    { id: 'chat', output: ['text'] },
    { id: 'vectors', output: ['embedding'] },
    { id: 'painter', output: ['image'], operations: ['images', 'image_edits'] },
    { id: 'judge', output: ['moderation'] },
    { id: 'reader', output: ['text'], operations: ['ocr'] },
    { id: 'ranker', output: ['rerank'], operations: ['rerank'] },
    { id: 'decider', output: ['decision'] },
    { id: 'speaker', output: ['audio'], operations: ['speech'] },
    { id: 'hearer', input: ['audio'], output: ['text'], operations: ['transcriptions', 'translations'] },
    { id: 'film', output: ['video'], operations: ['videos'] },
    { id: 'voice', input: ['text', 'audio'], output: ['text', 'audio'], operations: ['realtime'] },
  ].map(model => ({ name: model.id, family: 'test', input: ['text', 'image', 'file'], ...model })),
})

const messages = [{ role: 'user', content: 'Hi' }]
const contents = [{ parts: [{ text: 'Hi' }] }]
const form = (model: string, file: string, more: Record<string, string> = {}) => {
  const body = new FormData()
  body.set('model', model)
  for (const [name, value] of Object.entries(more)) body.set(name, value)
  const bytes = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(24, 1)])
  body.set(file, new File([bytes], file === 'image' ? 'a.png' : 'a.mp3'))
  return body
}
const requests: readonly [path: string, body: object, headers?: Record<string, string>][] = [
  ['/v1/chat/completions', { model: 'chat', messages }],
  ['/v1/chat/completions', { model: 'acme/chat', messages, stream: true }],
  ['/v1/chat/completions', { model: 'chat', models: ['chat'], messages }],
  ['/v1/chat/completions', { model: 'auto', messages }],
  ['/v1/messages', { model: 'chat', messages, max_tokens: 5 }],
  ['/v1/messages/count_tokens', { model: 'chat', messages }],
  ['/v1/completions', { model: 'chat', prompt: 'Hi' }],
  ['/v1/responses', { model: 'chat', input: 'Hi' }],
  ['/v1beta/models/chat:generateContent', { contents }],
  ['/v1beta/models/chat:streamGenerateContent?alt=sse', { contents }],
  ['/v1beta/models/vectors:embedContent', { content: contents[0] }],
  [
    '/v3/ai/language-model',
    { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    {
      'ai-language-model-id': 'chat',
      'ai-language-model-streaming': 'false',
      'ai-language-model-specification-version': '3',
    },
  ],
  ['/v1/embeddings', { model: 'vectors', input: 'Hi' }],
  ['/v1/moderations', { model: 'judge', input: 'Hi' }],
  ['/v1/ocr', { model: 'reader', document: { type: 'document_url', document_url: 'https://a.example/a.pdf' } }],
  ['/v1/rerank', { model: 'ranker', query: 'a', documents: ['a', 'b'] }],
  ['/v2/rerank', { model: 'ranker', query: 'a', documents: ['a', 'b'] }],
  ['/v1/audio/speech', { model: 'speaker', input: 'Hi', voice: 'alloy' }],
  ['/v1/audio/transcriptions', form('hearer', 'file')],
  ['/v1/audio/translations', form('hearer', 'file')],
  ['/v1/images/generations', { model: 'painter', prompt: 'a cat' }],
  ['/v1/images/edits', form('painter', 'image', { prompt: 'a cat' })],
  ['/v1/videos', { model: 'film', prompt: 'a cat' }],
  ['/v1/realtime/client_secrets', { session: { type: 'realtime', model: 'voice' } }],
]

t.test('a model without a credential is 404 at every endpoint, and no answer names a variable', async t => {
  for (const [path, body, headers] of requests) {
    const says = `${path} ${JSON.stringify((body as { model?: string }).model ?? '')}`
    const answer =
      body instanceof FormData
        ? await fetch(gateway.url + path, { method: 'POST', body, headers: { authorization: `Bearer ${gateway.key}` } })
        : await gateway.post(path, body, headers)
    const text = await answer.text()
    t.equal(answer.status, 404, `${says} ${text}`)
    t.equal(answer.headers.get('retry-after'), null, says)
    t.match(text, /is not available: no .* has a credential/, says)
    t.notMatch(text, VARIABLE, says)
    if (path.includes('/ai/'))
      t.match(JSON.parse(text), { error: { type: 'model_not_found', param: { modelId: 'chat' } } })
  }
  t.match(await refusalOf(new RealtimeClient(gateway)), [404, 'model_not_available'])
})

t.test('the log and the list of providers name the variable', async t => {
  await gateway.post('/v1/embeddings', { model: 'vectors', input: 'Hi' })
  t.match(gateway.stdout() + gateway.stderr(), new RegExp(`"code":"model_not_available".*"remedy":"Set ${VARIABLE} `))
  const providers = await commandsOf(gateway)('providers.list')
  t.match(providers, [{ id: 'acme', status: 'no credential', variables: [VARIABLE] }])
})
