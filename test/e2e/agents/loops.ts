/** Two agents, each on an official client as it is: they keep what they get and send it back, as agents do. */
import Anthropic from '@anthropic-ai/sdk'
import { type Content as GoogleContent, GoogleGenAI, type Part, ThinkingLevel } from '@google/genai'
import OpenAI from 'openai'
import { type Delta, grow, type Message } from '../../helpers/chat.ts'
import type { Gateway } from '../../helpers/gateway.ts'

const question = 'What is the weather like?'
const description = 'Weather of a city'
const schema = { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] }

/** What an agent did in a turn. */
export interface Step {
  readonly thought: string
  readonly text: string
  readonly calls: readonly unknown[]
}

/** One conversation with one model, a streamed turn at a time; tools answer at once. */
export interface Agent {
  turn(): Promise<Step>
}

const tools: OpenAI.ChatCompletionTool[] = [
  { type: 'function', function: { name: 'weather', description, parameters: schema } },
]
const clientOf = (gateway: Gateway) => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })

/** `create({ stream: true })` of the `openai` client. */
export function openAiAgent(gateway: Gateway, model: string): Agent {
  const client = clientOf(gateway)
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: question }]
  return {
    async turn() {
      const stream = await client.chat.completions.create({
        model,
        messages,
        tools,
        reasoning_effort: 'high',
        stream: true,
      })
      const message: Message = { role: 'assistant', content: null }
      for await (const chunk of stream) {
        for (const { delta } of chunk.choices) grow(message, delta as Delta)
      }
      messages.push(message)
      const calls = message.tool_calls ?? []
      for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: 'cold' })
      return {
        thought: message.reasoning ?? '',
        text: message.content ?? '',
        calls: calls.map(call => JSON.parse(call.function.arguments)),
      }
    },
  }
}

/** `runTools()` of the `openai` client: it runs the loop itself, and keeps of an answer only the fields that it knows. */
export async function openAiRunner(gateway: Gateway, model: string): Promise<string | null> {
  const tool = {
    type: 'function' as const,
    function: { name: 'weather', description, parameters: schema, parse: JSON.parse, function: async () => 'cold' },
  }
  const runner = clientOf(gateway).chat.completions.runTools({
    model,
    messages: [{ role: 'user', content: question }],
    tools: [tool],
    reasoning_effort: 'high',
    stream: true,
  })
  return runner.finalContent()
}

/** `stream()` of the `openai` client: of fields that it does not know it keeps what the last chunk said. */
export async function openAiHelper(gateway: Gateway, model: string): Promise<string | null> {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: question }]
  for (;;) {
    const { choices } = await clientOf(gateway)
      .chat.completions.stream({ model, messages, tools, reasoning_effort: 'high' })
      .finalChatCompletion()
    const { message } = choices[0]!
    if (!message.tool_calls?.length) return message.content
    messages.push(message)
    for (const { id } of message.tool_calls) messages.push({ role: 'tool', tool_call_id: id, content: 'cold' })
  }
}

/** `responses.create()` of the `openai` client, by a program that sends no reasoning items back. */
export async function thoughtlessResponses(gateway: Gateway, model: string): Promise<string | null> {
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: question }]
  const tools = [{ type: 'function' as const, name: 'weather', description, parameters: schema, strict: false }]
  for (;;) {
    const answer = await clientOf(gateway).responses.create({ model, input, tools, reasoning: { effort: 'high' } })
    const calls = answer.output.filter(item => item.type === 'function_call')
    if (calls.length === 0) return answer.output_text
    input.push(...calls)
    for (const { call_id } of calls) input.push({ type: 'function_call_output', call_id, output: 'cold' })
  }
}

const messagesTools: Anthropic.Tool[] = [{ name: 'weather', description, input_schema: schema }]

/** A turn of the `@anthropic-ai/sdk` client, by `messages.create()` or `messages.stream()`. */
export async function contentOf(
  gateway: Gateway,
  model: string,
  streams: boolean,
  messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }],
): Promise<Anthropic.ContentBlock[]> {
  const client = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
  const thinking = { type: 'adaptive' } as const
  const params = { model, max_tokens: 4000, thinking, messages, tools: messagesTools }
  const answer = streams ? client.messages.stream(params).finalMessage() : client.messages.create(params)
  return (await answer).content
}

/** The `@anthropic-ai/sdk` client; `kept` is what it sends back of an answer. */
function messagesAgent(turn: typeof contentOf, streams: boolean, kept: (content: Content) => Content) {
  return (gateway: Gateway, model: string): Agent => {
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: question }]
    return {
      async turn() {
        const content = await turn(gateway, model, streams, messages)
        messages.push({ role: 'assistant', content: kept(content) })
        const calls = content.filter(block => block.type === 'tool_use')
        if (calls.length > 0) {
          const results = calls.map(({ id }) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'cold' }))
          messages.push({ role: 'user', content: results })
        }
        return {
          thought: content.flatMap(block => (block.type === 'thinking' ? [block.thinking] : [])).join(''),
          text: content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join(''),
          calls: calls.map(({ input }) => input),
        }
      },
    }
  }
}
type Content = Anthropic.ContentBlock[]

/** It streams, and keeps what it gets as it is. */
export const anthropicAgent = messagesAgent(contentOf, true, content => content)

/** It wants answers whole, and keeps of a block what its types name: thinking first, then text, then calls. */
export const typedAgent = messagesAgent(contentOf, false, content => {
  const order = ['thinking', 'text', 'tool_use']
  const sorted = [...content].sort((a, b) => order.indexOf(a.type) - order.indexOf(b.type))
  return sorted.flatMap((block): Content => {
    switch (block.type) {
      case 'thinking':
        return [{ type: 'thinking', thinking: block.thinking, signature: block.signature }]
      case 'text':
        return [{ type: 'text', text: block.text, citations: null }]
      case 'tool_use':
        return [{ type: 'tool_use', id: block.id, name: block.name, input: block.input, caller: block.caller }]
      default:
        return []
    }
  })
})

export const googleClient = ({ url, key }: Gateway) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } })

/** `generateContentStream()` of the `@google/genai` client; `kept` is what it sends back of an answer. */
function googleAgent(kept: (parts: Part[]) => Part[]) {
  return (gateway: Gateway, model: string): Agent => {
    const client = googleClient(gateway)
    const contents: GoogleContent[] = [{ role: 'user', parts: [{ text: question }] }]
    const config = {
      tools: [{ functionDeclarations: [{ name: 'weather', description, parametersJsonSchema: schema }] }],
      thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.HIGH },
    }
    return {
      async turn() {
        const parts: Part[] = []
        for await (const chunk of await client.models.generateContentStream({ model, contents, config })) {
          parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []))
        }
        contents.push({ role: 'model', parts: kept(parts) })
        const calls = parts.flatMap(({ functionCall: call }) => call ?? [])
        if (calls.length > 0) {
          const results = calls.map(({ name }) => ({ functionResponse: { name: name!, response: { output: 'cold' } } }))
          contents.push({ role: 'user', parts: results })
        }
        const said = (thought: boolean) =>
          parts.flatMap(part => (part.text && (part.thought === true) === thought ? [part.text] : [])).join('')
        return { thought: said(true), text: said(false), calls: calls.map(({ args }) => args) }
      },
    }
  }
}

export const geminiAgent = googleAgent(parts => parts)
/** It drops thoughts and ids, as clients do that show no thinking. */
export const thoughtlessAgent = googleAgent(parts =>
  parts
    .filter(({ thought }) => !thought)
    .map(({ functionCall: call, ...part }) =>
      call ? { ...part, functionCall: { name: call.name!, args: call.args! } } : part,
    ),
)
