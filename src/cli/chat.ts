/** `gatewayctl chat`: one question through the public listener, as any client would ask it. */
import type { IncomingMessage } from 'node:http'
import type { Command } from 'commander'
import type { Status } from '../admin/commands/status.ts'
import type { OperatorSession } from '../core/ports.ts'
import { parseError } from './admin.ts'
import { call, parseUrl, readText, unreachable } from './http.ts'
import { errorCode, Failure, type Io, oneLine } from './io.ts'
import { readSecret, refuseSecret } from './secrets.ts'
import type { Open, Session } from './session.ts'

/** As long as a provider may take for a whole answer. */
const SILENCE_MS = 900_000

const PUBLIC_EXAMPLE = 'http://127.0.0.1:8080'

/** The parts of a completion or of a stream's chunk that are shown. */
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

interface ChatOptions {
  readonly model: string
  readonly stream?: boolean
  readonly keyStdin?: boolean
  readonly project: string
  readonly url?: string
}

export function addChat(program: Command, open: Open): void {
  const chat = program
    .command('chat')
    .description('ask a model one question; with --json the answer comes whole')
    .argument('<text>', 'the question')
    .option('--model <model>', 'model, or provider/model', 'demo')
    .option('--stream', 'show the answer as it comes')
    .option(
      '--key-stdin',
      'read an API key from standard input (default: GATEWAY_API_KEY, else the admin token suffices)',
    )
    .option('--project <project>', 'the project that pays when there is no key', 'default')
    .option('--url <url>', 'the public listener (default: asked of the admin listener)')
    .action(async (text: string, options: ChatOptions, command: Command) => {
      const session = open(command)
      const stream = options.stream === true && !session.json
      const response = await ask(text, options, stream, session)
      if (stream) showRemark(await showStream(response, session.io), session.io)
      else {
        const answer = parseAnswer(await readText(response))
        session.print(answer, whole => `${whole.choices?.[0]?.message?.content ?? ''}\n`)
        if (!session.json) showRemark(answer, session.io)
      }
    })
  refuseSecret(chat, '--key', 'set GATEWAY_API_KEY, or write the key to standard input with --key-stdin')
}

function parseAnswer(text: string): Answer {
  try {
    return JSON.parse(text) as Answer
  } catch {
    throw new Failure("the answer is no JSON; pass the gateway's public listener as --url")
  }
}

/** Without a key, with one that the admin listener lends for this request. */
async function ask(text: string, options: ChatOptions, stream: boolean, session: Session): Promise<IncomingMessage> {
  const own = options.keyStdin ? await readSecret(session.io, 'chat --key-stdin') : session.io.env.GATEWAY_API_KEY
  if (own) return send(text, options, stream, session, own)
  const { admin, io } = session
  const { id, key } = await admin.command<OperatorSession>('sessions.begin', { project: options.project })
  try {
    return await send(text, options, stream, session, key)
  } finally {
    // The request is under way, or refused; nothing needs the key any more.
    await admin.command('sessions.end', { id }).catch((thrown: unknown) => {
      io.err(`the session of this request ends within a minute; it could not be ended at once: ${oneLine(thrown)}\n`)
    })
  }
}

async function send(
  text: string,
  options: ChatOptions,
  stream: boolean,
  session: Session,
  key: string,
): Promise<IncomingMessage> {
  const base = options.url === undefined ? await publicUrl(session) : parseUrl(options.url, PUBLIC_EXAMPLE)
  const url = new URL(`${base.pathname.replace(/\/(?:v1\/?)?$/, '')}/v1/chat/completions`, base)
  const body = { model: options.model, messages: [{ role: 'user', content: text }], stream }
  try {
    const headers = { authorization: `Bearer ${key}`, 'x-source': 'gatewayctl' }
    const response = await call(url, { method: 'POST', headers, body, silenceMs: SILENCE_MS })
    if (response.statusCode! < 400) return response
    const error = parseError(await readText(response))
    throw new Failure(error?.message ?? `${url.origin} answered with status ${response.statusCode}`, error)
  } catch (thrown) {
    if (!unreachable(thrown)) throw thrown
    throw new Failure(`cannot reach the gateway at ${url.origin}; start it with \`npx model-gateway\` or pass --url`)
  }
}

/** A gateway that listens on every address is reached where its admin listener is. */
async function publicUrl({ admin }: Session): Promise<URL> {
  const { listen } = await admin.command<Status>('status')
  const url = parseUrl(listen, PUBLIC_EXAMPLE)
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = admin.url.hostname
  return url
}

/** Writes the text as it comes; resolves with what the last chunks say of usage and routing. */
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
      const chunk = parseAnswer(data)
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
  if (!done) throw new Failure('the stream ended before it was complete')
  return last
}

/** Who answered, at which cost: a remark beside the answer, so it goes to standard error. */
function showRemark({ usage, metadata }: Answer, io: Io): void {
  const parts: string[] = []
  if (metadata) parts.push(`${metadata.used_provider}/${metadata.used_model}`)
  if (metadata?.routing) parts.push(`${metadata.routing.length} attempt${metadata.routing.length === 1 ? '' : 's'}`)
  if (usage) parts.push(`${usage.prompt_tokens} + ${usage.completion_tokens} tokens`)
  if (usage && usage.cost !== undefined) parts.push(usage.cost === null ? 'price unknown' : `$${usage.cost}`)
  if (parts.length > 0) io.err(`[${parts.join(', ')}]\n`)
}
