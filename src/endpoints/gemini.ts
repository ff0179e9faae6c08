/** Google's API below `/v1beta`, and its methods below `/v1`. */
import { batchEmbedContents, embedContent } from '../codecs/gemini-embeddings.ts'
import { countTokens, generateContent, streamGenerateContent } from '../codecs/gemini-generate.ts'
import { geminiModels } from '../codecs/model-forms.ts'
import type { Endpoint, Method } from '../core/endpoint.ts'
import { errors } from '../lib/error.ts'
import { chat } from '../operations/chat/index.ts'
import { embeddings as embeddingsOperation } from '../operations/embeddings/index.ts'
import { estimated } from './inference.ts'
import { modelReply } from './model.ts'
import { listingReply } from './models.ts'

const generate = { name: 'gemini', operation: chat } as const
const embed = { name: 'embeddings', operation: embeddingsOperation } as const

const METHODS = [
  { ...generate, call: 'generateContent', codec: generateContent },
  { ...generate, call: 'streamGenerateContent', codec: streamGenerateContent },
  { name: 'count_tokens', operation: chat, call: 'countTokens', codec: countTokens, counts: true, instead: estimated },
  { ...embed, call: 'embedContent', codec: embedContent },
  { ...embed, call: 'batchEmbedContents', codec: batchEmbedContents },
] as const

const methods = ['/v1beta/models', '/v1/models'].flatMap(base =>
  METHODS.map(
    ({ call, ...row }): Endpoint => ({
      method: 'POST',
      path: `${base}/{+model}:${call}`,
      chain: 'inference',
      serve: 'upstream',
      bodyLimit: 32 * 1024 * 1024,
      ...row,
    }),
  ),
)

const local = { name: 'models', method: 'GET', chain: 'local', codec: geminiModels, bodyLimit: 0 } as const

const catalogue: readonly Endpoint[] = [
  { ...local, path: '/v1beta/models', serve: listingReply },
  { ...local, path: '/v1beta/models/{+model}', serve: async ex => modelReply(ex, ex.http.params.model!) },
]

const calls = METHODS.map(({ call }) => call).join(', ')

/** Any other path: clients of this wire read errors only in its own form. */
const nothing = (method: Method, path: string): Endpoint => ({
  ...local,
  method,
  path,
  open: true,
  serve({ http: { params } }) {
    const asked = path.replace('{+path}', () => params.path!).slice(0, 200)
    return Promise.reject(errors.notFound(`There is no ${method} ${asked}. The methods of models are ${calls}.`))
  },
})

/** Generation, token counts, embeddings and the catalogue; other paths get a 404 in Google's form. */
export const gemini: readonly Endpoint[] = [
  ...methods,
  ...catalogue,
  nothing('POST', '/v1/models/{+path}'),
  ...(['POST', 'PUT', 'PATCH', 'DELETE'] as const).map(method => nothing(method, '/v1beta/models')),
  ...(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map(method => nothing(method, '/v1beta/{+path}')),
]
