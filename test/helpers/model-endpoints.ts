/** Every endpoint that names a model, each as one request to the demo provider. */
import { wavHead } from '../../src/lib/wav.ts'
import { callAiSdk } from './ai-sdk-chat.ts'
import type { Gateway } from './gateway.ts'
import { callTool } from './mcp.ts'
import { RealtimeClient } from './realtime-client.ts'
import type { SentEvent } from './realtime-provider.ts'

type Tree = Record<string, unknown>

/** Whose shape a refusal has. `message` promises no more than `error.message`. */
export type RefusalShape = 'openai' | 'anthropic' | 'google' | 'message' | 'tool'

/** What a client sees of one request. */
export interface Seen {
  readonly status: number
  readonly body: unknown
  readonly headers?: Headers
}
interface AiSdkMetadata {
  readonly usedModel: string
  readonly routing: { readonly originalModelId: string }
}
/** A request of one endpoint that names a model. */
export interface ModelEndpoint {
  /** Of the demo provider. */
  readonly model: string
  readonly ask: (model: string, headers: Record<string, string>) => Promise<Seen>
  /** Whose shape its refusals have; OpenAI's where it is left out. */
  readonly refusedAs?: RefusalShape
  /** Where its answer has metadata. */
  readonly metadata?: (body: never) => unknown
  /** No request under its id is recorded. */
  readonly unrecorded?: true
  /** The gateway answers by itself where no target counts. */
  readonly estimated?: true
}

/** Reads an answer: JSON, or text. */
export const seen = async (answer: Response): Promise<Seen> => {
  const bytes = Buffer.from(await answer.arrayBuffer())
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return {
    status: answer.status,
    body: isJson ? (JSON.parse(String(bytes)) as unknown) : String(bytes),
    headers: answer.headers,
  }
}

const messages = [{ role: 'user', content: 'Who answers?' }]
const contents = [{ role: 'user', parts: [{ text: 'Who answers?' }] }]
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const png = () => new Blob([Buffer.from(pixel.split(',')[1]!, 'base64')], { type: 'image/png' })
const sound = () => new Blob([wavHead(16_000, 3200), Buffer.alloc(3200)])

/** By name. */
export function modelEndpoints(gateway: Gateway): Record<string, ModelEndpoint> {
  const json =
    (path: string, body: Tree): ModelEndpoint['ask'] =>
    async (model, headers) =>
      seen(await gateway.post(path, { model, ...body }, headers))
  const form =
    (path: string, fields: () => Record<string, string | Blob>): ModelEndpoint['ask'] =>
    async (model, headers) => {
      const data = new FormData()
      for (const [name, value] of Object.entries({ model, ...fields() })) data.set(name, value)
      return seen(
        await fetch(`${gateway.url}${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.key}`, ...headers },
          body: data,
        }),
      )
    }
  const google =
    (call: string, body: Tree): ModelEndpoint['ask'] =>
    async (model, headers) =>
      seen(await gateway.post(`/v1beta/models/${model}:${call}`, body, headers))
  const tool = async (name: string, args: Tree, headers: Record<string, string>): Promise<Seen> => {
    const body = await callTool(gateway, name, args, headers)
    return { status: body.isError ? 403 : 200, body }
  }

  return {
    chat: {
      model: 'demo',
      ask: json('/v1/chat/completions', { messages }),
      metadata: ({ metadata }: Tree) => metadata,
    },
    'legacy completions': {
      model: 'demo',
      ask: json('/v1/completions', { prompt: 'Who?' }),
      metadata: ({ metadata }: Tree) => metadata,
    },
    messages: {
      model: 'demo',
      ask: json('/v1/messages', { messages, max_tokens: 9 }),
      metadata: ({ metadata }: Tree) => metadata,
      refusedAs: 'anthropic',
    },
    'count_tokens of Messages': {
      model: 'demo',
      ask: json('/v1/messages/count_tokens', { messages }),
      refusedAs: 'anthropic',
      estimated: true,
    },
    responses: {
      model: 'demo',
      ask: json('/v1/responses', { input: 'Who?' }),
      metadata: ({ gateway }: Tree) => gateway,
    },
    'Gemini generateContent': {
      model: 'demo',
      ask: google('generateContent', { contents }),
      metadata: ({ gateway }: Tree) => gateway,
      refusedAs: 'google',
    },
    'Gemini countTokens': {
      model: 'demo',
      ask: google('countTokens', { contents }),
      refusedAs: 'google',
      estimated: true,
    },
    'AI SDK': {
      model: 'demo',
      ask: async (model, headers) =>
        seen(
          await callAiSdk(
            gateway,
            model,
            { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Who?' }] }] },
            'whole',
            headers,
          ),
        ),
      metadata: ({ providerMetadata: { gateway } }: { providerMetadata: { gateway: AiSdkMetadata } }) => ({
        requested_model: gateway.routing.originalModelId,
        used_model: gateway.usedModel.replace('demo/', ''),
      }),
      refusedAs: 'message',
    },
    embeddings: { model: 'demo-embed', ask: json('/v1/embeddings', { input: 'a' }) },
    'Gemini embedContent': {
      model: 'demo-embed',
      ask: google('embedContent', { content: contents[0]! }),
      metadata: ({ gateway }: Tree) => gateway,
      refusedAs: 'google',
    },
    images: { model: 'demo-image', ask: json('/v1/images/generations', { prompt: 'a cat' }) },
    'edits of images': {
      model: 'demo-image',
      ask: form('/v1/images/edits', () => ({ prompt: 'a cat', image: png() })),
    },
    speech: {
      model: 'demo-speech',
      ask: json('/v1/audio/speech', { input: 'Hi', response_format: 'wav', voice: 'a' }),
    },
    transcriptions: { model: 'demo-transcribe', ask: form('/v1/audio/transcriptions', () => ({ file: sound() })) },
    translations: { model: 'demo-transcribe', ask: form('/v1/audio/translations', () => ({ file: sound() })) },
    moderations: { model: 'demo-moderation', ask: json('/v1/moderations', { input: 'words' }) },
    OCR: { model: 'demo-ocr', ask: json('/v1/ocr', { document: { type: 'image_url', image_url: pixel } }) },
    rerank: { model: 'demo-rerank', ask: json('/v1/rerank', { query: 'q', documents: ['a', 'b'] }) },
    'rerank of Cohere': { model: 'demo-rerank', ask: json('/v2/rerank', { query: 'q', documents: ['a', 'b'] }) },
    decisions: {
      model: 'demo-decision',
      ask: json('/v1/systemone', { state: 'x', questions: { a: { type: 'noul', instructions: 'x' } } }),
    },
    videos: { model: 'demo-video', ask: json('/v1/videos', { prompt: 'a cat', seconds: 4 }) },
    'the chat tool of MCP': {
      model: 'demo',
      ask: (model, headers) => tool('chat', { model, messages }, headers),
      refusedAs: 'tool',
      unrecorded: true,
    },
    'the image tool of MCP': {
      model: 'demo-image',
      ask: (model, headers) => tool('generate-image', { model, prompt: 'a cat' }, headers),
      refusedAs: 'tool',
      unrecorded: true,
    },
    'realtime sessions': {
      model: 'demo-realtime',
      async ask(model, headers) {
        return talked(new RealtimeClient(gateway, `?model=${model}`, { headers }))
      },
    },
    'realtime sessions by a client secret': {
      model: 'demo-realtime',
      async ask(model, headers) {
        const session = { type: 'realtime', model }
        const { authorization, ...own } = headers
        const by: Record<string, string> = authorization === undefined ? {} : { authorization }
        const minted = await seen(await gateway.post('/v1/realtime/client_secrets', { session }, by))
        if (minted.status !== 200) return minted
        const { value } = minted.body as { value: string }
        return talked(new RealtimeClient(gateway, '', { key: value, headers: own }))
      },
    },
  }
}

const talked = (client: RealtimeClient): Promise<Seen> =>
  opened(client, async () => {
    await client.until('session.created')
    client.send({ type: 'response.create' })
    return client.until('response.done')
  })

/** What a session has told, or the answer that refuses it. */
export async function opened(client: RealtimeClient, talk: () => Promise<SentEvent>): Promise<Seen> {
  const refused = new Promise<Seen>(resolve =>
    client.ws.once('unexpected-response', (_request, answer) => {
      void answer.toArray().then((chunks: Buffer[]) => {
        resolve({ status: answer.statusCode!, body: JSON.parse(Buffer.concat(chunks).toString()) })
      })
    }),
  )
  const answered = (async (): Promise<Seen> => {
    const body = await talk()
    await client.end()
    return { status: body.type === 'error' ? 403 : 200, body }
  })()
  answered.catch(() => undefined)
  return Promise.race([refused, answered])
}
