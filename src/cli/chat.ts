/** `gatewayctl chat`: one question through the public listener, with the rights and limits of a client. */
import type { IncomingMessage } from 'node:http'
import type { Command } from 'commander'
import { readText } from './http.ts'
import { errorCode, Failure, type Io } from './io.ts'
import { addPublicOptions, type PublicOptions, parseAnswer, post } from './public.ts'
import type { Open } from './session.ts'

/** The printed parts of a completion or of a stream's chunk. */
interface Answer {
  readonly error?: { readonly message: string }
  readonly choices?: readonly {
    readonly message?: { readonly content?: string | null }
    readonly delta?: { readonly content?: string | null }
  }[]
  readonly usage?: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly cost?: number | null
  }
  readonly metadata?: {
    readonly used_model: string
    readonly used_provider: string
    readonly routing?: readonly unknown[]
  }
}

interface ChatOptions extends PublicOptions {
  readonly model: string
  readonly stream?: boolean
}

/** Adds `chat`, which calls `POST /v1/chat/completions`. */
export function addChat(program: Command, open: Open): void {
  const chat = program
    .command('chat')
    .description('ask a model one question; with --json the whole answer is printed')
    .argument('<text>', 'the question')
    .option('--model <model>', 'a model, or provider/model', 'demo')
    .option('--stream', 'print the answer while it arrives')
    .action(async (text: string, options: ChatOptions, command: Command) => {
      const session = open(command)
      const stream = options.stream === true && !session.json
      const body = { model: options.model, messages: [{ role: 'user', content: text }], stream }
      const response = await post('chat', '/v1/chat/completions', { body }, options, session)
      if (stream) showRemark(await showStream(response, session.io), session.io)
      else {
        const answer = parseAnswer<Answer>(await readText(response))
        session.print(answer, whole => `${whole.choices?.[0]?.message?.content ?? ''}\n`)
        if (!session.json) showRemark(answer, session.io)
      }
    })
  addPublicOptions(chat)
}

/** Prints the text while it arrives; resolves with usage and routing of the last chunks. */
async function showStream(response: IncomingMessage, io: Io): Promise<Answer> {
  const { createParser } = await import('eventsource-parser')
  let last: Answer = {}
  let done = false
  const parser = createParser({
    onEvent({ data }) {
      if (data === '[DONE]') {
        done = true
        return
      }
      const chunk = parseAnswer<Answer>(data)
      if (chunk.error) throw new Failure(chunk.error.message, chunk.error)
      io.out(chunk.choices?.[0]?.delta?.content ?? '')
      last = {
        ...last,
        ...(chunk.usage && { usage: chunk.usage }),
        ...(chunk.metadata && { metadata: chunk.metadata }),
      }
    },
  })
  response.setEncoding('utf8')
  try {
    for await (const text of response as AsyncIterable<string>) parser.feed(text)
  } catch (thrown) {
    if (errorCode(thrown) !== 'ECONNRESET') throw thrown
  }
  io.out('\n')
  if (!done) throw new Failure('the stream ended before the answer was complete')
  return last
}

/** Provider and cost: a remark, so it goes to standard error. */
function showRemark({ usage, metadata }: Answer, io: Io): void {
  const parts: string[] = []
  if (metadata) parts.push(`${metadata.used_provider}/${metadata.used_model}`)
  if (metadata?.routing) parts.push(`${metadata.routing.length} attempt${metadata.routing.length === 1 ? '' : 's'}`)
  if (usage) parts.push(`${usage.prompt_tokens} + ${usage.completion_tokens} tokens`)
  if (usage && usage.cost !== undefined) parts.push(usage.cost === null ? 'price unknown' : `$${usage.cost}`)
  if (parts.length > 0) io.err(`[${parts.join(', ')}]\n`)
}
