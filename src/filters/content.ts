/** Collects what a request asks and its client gets, within a bound, for projects that keep it for a time. */
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Services } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import { asError } from '../lib/error.ts'

/** Characters of the request, and of the answer: what is beyond is left out. */
const MAX_CONTENT_CHARACTERS = 128 * 1024
/** Characters of one text of the request, such as an image as a data URL. */
const MAX_STRING_CHARACTERS = 32 * 1024
const SECRET = /secret|password|authorization|api_?key/i

/** A part of an answer: pieces of one kind that follow one another. */
interface Part {
  readonly type: string
  readonly choice: number
  readonly name?: string | undefined
  text: string
}

/** The content of one exchange. */
class Content {
  #request: string | undefined
  readonly #answer: Part[] = []
  #left = MAX_CONTENT_CHARACTERS
  #isCut = false

  asked(body: unknown): void {
    this.#request = JSON.stringify(body, (name, value: unknown) => {
      if (typeof value !== 'string') return value
      if (SECRET.test(name)) return '[hidden]'
      if (value.length <= MAX_STRING_CHARACTERS) return value
      this.#isCut = true
      return `${value.slice(0, MAX_STRING_CHARACTERS)}…`
    })
  }

  /** Keeps the answer of `next`, or its error. */
  async answered(next: () => Promise<Reply>): Promise<Reply> {
    try {
      const reply = await next()
      reply.events = this.watched(reply.events)
      return reply
    } catch (thrown) {
      this.#add('error', 0, asError(thrown).message)
      throw thrown
    }
  }

  got(batch: readonly Event[]): void {
    for (const event of batch) {
      if (event.type === 'text' || event.type === 'refusal' || event.type === 'reasoning') {
        this.#add(event.type, event.choice, event.text)
      } else if (event.type === 'tool') this.#add('tool', event.choice, event.args ?? '', event.name)
      else if (event.type === 'image') this.#add('image', event.choice, event.url, 'image')
      else if (event.type === 'result') this.#add('result', 0, String(event.bytes ?? JSON.stringify(event.value)))
      else if (event.type === 'error') this.#add('error', 0, event.error.message)
    }
  }

  /** Passes an answer on. */
  async *watched(events: Reply['events']): Reply['events'] {
    for await (const batch of events) {
      this.got(batch)
      yield batch
    }
  }

  #add(type: string, choice: number, text: string, name?: string): void {
    const kept = text.slice(0, this.#left)
    this.#left -= kept.length
    if (kept.length < text.length) this.#isCut = true
    const last = this.#answer.at(-1)
    if (last?.type === type && last.choice === choice && name === undefined) last.text += kept
    else if (kept !== '' || name !== undefined) this.#answer.push({ type, choice, name, text: kept })
  }

  /** JSON: the request, as a text where it is cut. */
  toString(): string {
    const text = this.#request ?? 'null'
    const isLong = text.length > MAX_CONTENT_CHARACTERS
    const request = isLong ? JSON.stringify(text.slice(0, MAX_CONTENT_CHARACTERS)) : text
    return `{"request":${request},"answer":${JSON.stringify(this.#answer)},"cut":${isLong || this.#isCut}}`
  }
}

/** Keeps contents of exchanges; nothing for organizations that keep no data. */
export class ContentLog {
  readonly #services: Pick<Services, 'contents' | 'log'>
  readonly #contents = new WeakMap<Exchange, Content>()

  constructor(services: Pick<Services, 'contents' | 'log'>) {
    this.#services = services
  }

  /** Begins for a request whose project keeps content. Returns what gets its body. */
  begin(ex: Exchange): Content | undefined {
    if (
      ex.operation.isSession ||
      ex.caller.principal?.contentMs === undefined ||
      ex.caller.policy?.keepsReplies === false
    )
      return undefined
    const content = new Content()
    this.#contents.set(ex, content)
    return content
  }

  /** Resolves when the content is kept, or could not be: no answer fails for that. */
  finish(ex: Exchange): Promise<void> | undefined {
    const content = this.#contents.get(ex)
    return content && this.#keep(ex, content)
  }

  async #keep(ex: Exchange, content: Content): Promise<void> {
    const { orgId, projectId } = ex.caller.principal!
    try {
      await this.#services.contents.add({ id: ex.logId, orgId, projectId, createdAt: ex.at, content: String(content) })
    } catch (err) {
      this.#services.log.warn({ err, log_id: ex.logId }, 'content not kept')
    }
  }
}
