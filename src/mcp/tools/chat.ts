/** `chat`: calls a chat model. */
import { formatMoney } from '../../core/money.ts'
import { type Infer, s } from '../../core/schema.ts'
import { type Block, type Tool, textBlock } from '../tool.ts'
import { generate } from './generate.ts'

const input = s.object({
  model: s.string({ minLength: 1, description: 'An id from list-models, <provider>/<id>, or auto.' }),
  messages: s.array(s.object({ role: s.enum('user', 'assistant', 'system'), content: s.string() }), { minItems: 1 }),
  temperature: s.optional(s.number({ minimum: 0, maximum: 2 })),
  max_tokens: s.optional(s.integer({ minimum: 1 })),
})

/** The fields of a chat answer that the tool reads. */
interface Answer {
  readonly choices: readonly {
    readonly message: {
      readonly content: string | null
      readonly refusal?: string | null
      readonly images?: readonly { readonly image_url: { readonly url: string } }[]
    }
    readonly finish_reason: string | null
  }[]
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly total_tokens: number }
  readonly metadata?: { readonly used_provider?: string; readonly used_model?: string }
}

/** Runs the chain of `/v1/chat/completions`, unary; the request id is in `_meta`. */
export const chat: Tool<Infer<typeof input>> = {
  name: 'chat',
  title: 'Chat',
  description: 'Sends messages to a model and returns its reply. Spends money, within the limits of the API key.',
  scope: 'mcp:tools',
  input,
  async run(args, context) {
    const { error, ...made } = await generate(context, '/v1/chat/completions', args)
    if (error || !('ex' in made)) return error!
    const { choices, usage, metadata } = made.answer as Answer
    const { message, finish_reason } = choices[0]!
    const { cost } = made.ex.meter
    const facts = [
      `Model: ${metadata?.used_provider ?? ''}/${metadata?.used_model ?? ''}`,
      `Tokens: ${usage.prompt_tokens} prompt, ${usage.completion_tokens} completion, ${usage.total_tokens} total`,
      `Cost: ${cost ? formatMoney(cost.total) : 'unknown'} USD`,
    ]
    if (finish_reason === 'content_filter' || finish_reason === 'length') facts.push(`Finish: ${finish_reason}`)
    const images = (message.images ?? []).map(({ image_url }) => imageBlock(image_url.url))
    return {
      content: [textBlock(message.content || message.refusal || ''), ...images, textBlock(facts.join(' · '))],
      _meta: { 'model-gateway/requestId': made.ex.id },
    }
  },
}

const DATA_URL = /^data:(image\/[^;,]+);base64,/i

/** The image of a data URL. Any other address is text. */
function imageBlock(url: string): Block {
  const [head, mimeType] = DATA_URL.exec(url.slice(0, 100)) ?? []
  return mimeType ? { type: 'image', data: url.slice(head!.length), mimeType } : textBlock(url)
}
