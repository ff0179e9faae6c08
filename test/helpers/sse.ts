/** Reads an event stream to its end, like a client. */
import { createParser } from 'eventsource-parser'

/** The checked fields of a chat completions chunk. */
export interface ChatChunk {
  id?: string
  model?: string
  choices?: {
    index: number
    delta: {
      role?: string
      content?: string | null
      reasoning?: string | null
      refusal?: string | null
      tool_calls?: { index: number; id?: string; type?: string; function?: { name?: string; arguments?: string } }[]
    }
    finish_reason?: string | null
  }[]
  usage?: Record<string, unknown> | null
  metadata?: Record<string, unknown>
  error?: { message: string; type: string; param: string | null; code: string | null }
}

export interface StreamRead<T> {
  /** Parsed payloads in order, without the terminator. */
  data: T[]
  /** The `event:` name of each payload; undefined where it has none. */
  names: (string | undefined)[]
  comments: string[]
  /** `data: [DONE]`, or a `message_stop` event; null when the stream ended without either. */
  terminator: '[DONE]' | 'message_stop' | null
  /** Number of payloads after the terminator, which should be 0. */
  after: number
  /** The connection failed before the body's end. */
  broken: boolean
  raw: string
}

/** Rejects for payloads that are not JSON; reports a broken connection. */
export async function readEvents<T = ChatChunk>(response: Response): Promise<StreamRead<T>> {
  const read: StreamRead<T> = {
    data: [],
    names: [],
    comments: [],
    terminator: null,
    after: 0,
    broken: false,
    raw: '',
  }
  const parser = createParser({
    onComment: comment => read.comments.push(comment),
    onEvent: event => {
      if (read.terminator !== null) read.after++
      if (event.data === '[DONE]') {
        read.terminator = '[DONE]'
        return
      }
      read.data.push(JSON.parse(event.data) as T)
      read.names.push(event.event)
      if (event.event === 'message_stop') read.terminator = 'message_stop'
    },
  })
  const decoder = new TextDecoder()
  const reader = response.body?.getReader()
  for (;;) {
    const step = await reader?.read().catch(() => 'broken' as const)
    if (step === 'broken') read.broken = true
    if (step === undefined || step === 'broken' || step.done) return read
    const text = decoder.decode(step.value, { stream: true })
    read.raw += text
    parser.feed(text)
  }
}

/** The text of one choice of a chat completions stream. */
export const textOf = (chunks: ChatChunk[], choice = 0): string =>
  chunks
    .flatMap(chunk => chunk.choices ?? [])
    .filter(({ index }) => index === choice)
    .map(({ delta }) => delta.content ?? '')
    .join('')
