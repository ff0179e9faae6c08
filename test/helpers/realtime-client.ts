/** A client of realtime sessions that keeps what it gets. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import type { Gateway } from './gateway.ts'
import type { SentEvent } from './realtime-provider.ts'

export interface ClientOptions {
  /** The gateway's first one by default. */
  readonly key?: string
  /** Offered in place of a key. */
  readonly protocols?: string[]
  readonly headers?: Readonly<Record<string, string>>
}

export class RealtimeClient {
  readonly ws: WebSocket
  readonly got: SentEvent[] = []
  readonly closed: Promise<number>
  #wake = (): void => undefined

  constructor(gateway: Pick<Gateway, 'url' | 'key'>, query = '?model=voice', options: ClientOptions = {}) {
    const credential = options.protocols ? {} : { authorization: `Bearer ${options.key ?? gateway.key}` }
    const headers = { ...credential, ...options.headers }
    const url = `${gateway.url.replace('http', 'ws')}/v1/realtime${query}`
    this.ws = new WebSocket(url, options.protocols ?? [], { headers })
    this.ws.on('error', () => undefined)
    this.ws.on('message', (data: Buffer) => {
      this.got.push(JSON.parse(data.toString('utf8')) as SentEvent)
      this.#wake()
    })
    this.closed = new Promise(resolve => {
      this.ws.once('close', code => {
        resolve(code)
        this.#wake()
      })
    })
  }

  send(event: object): void {
    this.ws.send(JSON.stringify(event))
  }

  /** The next event of one of the types, from the first that was not taken. */
  async until(...types: string[]): Promise<SentEvent> {
    for (;;) {
      const at = this.got.findIndex(event => types.includes(event.type))
      if (at >= 0) return this.got.splice(0, at + 1).at(-1)!
      if (this.ws.readyState > WebSocket.OPEN) throw new Error(`closed before ${types.join(' and ')}`)
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  async opened(): Promise<this> {
    await this.until('session.created')
    return this
  }

  async end(): Promise<void> {
    this.ws.close(1000)
    await this.closed
  }
}

/** Status and code of the answer that refuses to open a session. */
export async function refusalOf({ ws }: RealtimeClient): Promise<[number | undefined, string]> {
  const [, answer] = (await once(ws, 'unexpected-response')) as [unknown, IncomingMessage]
  const { error } = JSON.parse((await answer.toArray()).join('')) as { error: { code: string } }
  return [answer.statusCode, error.code]
}
