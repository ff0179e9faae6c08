/** Calls providers that answer within this process, through the same handler as calls over sockets. */
import type { Dispatcher } from 'undici'
import type { InProcessProvider } from '../core/ports.ts'
import type { Content } from './content.ts'

/** A call for an in-process provider; `headers` are names and values in turn. */
interface InProcessCall {
  readonly method: string
  readonly path: string
  readonly headers: readonly string[]
  readonly body: Content['body']
}

/** Answers `call` to `handler`, from the next microtask on. Respects its pauses, and ends when it aborts. */
export function callInProcess(
  provider: InProcessProvider,
  call: InProcessCall,
  handler: Dispatcher.DispatchHandler,
): void {
  queueMicrotask(() => new Answering(provider, call, handler).begin())
}

class Answering implements Dispatcher.DispatchController {
  aborted = false
  paused = false
  reason: Error | null = null
  readonly rawHeaders = null
  readonly rawTrailers = null
  readonly #provider: InProcessProvider
  readonly #call: InProcessCall
  readonly #handler: Dispatcher.DispatchHandler
  #hasEnded = false
  #chunks: Iterator<Buffer> | undefined
  #isGiving = false

  constructor(provider: InProcessProvider, call: InProcessCall, handler: Dispatcher.DispatchHandler) {
    this.#provider = provider
    this.#call = call
    this.#handler = handler
  }

  begin(): void {
    this.#handler.onRequestStart?.(this, {})
    if (this.aborted) return
    const { method, path, headers, body } = this.#call
    const at = headers.indexOf('content-type')
    const contentType = at < 0 ? '' : (headers[at + 1] ?? '')
    const {
      status,
      contentType: type,
      chunks,
    } = this.#provider.answer({ method, path, contentType, body: bytesOf(body) })
    this.#chunks = chunks[Symbol.iterator]()
    this.#handler.onResponseStart?.(this, status, { 'content-type': type }, '')
    this.#give()
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    if (!this.paused) return
    this.paused = false
    setImmediate(this.#give)
  }

  abort(reason: Error): void {
    if (this.aborted || this.#hasEnded) return
    this.aborted = true
    this.reason = reason
    this.#chunks?.return?.()
    this.#handler.onResponseError?.(this, reason)
  }

  /** Gives chunks until the handler pauses. */
  readonly #give = (): void => {
    if (this.#isGiving) return
    this.#isGiving = true
    while (!this.paused && !this.aborted && !this.#hasEnded) {
      const { done, value } = this.#chunks!.next()
      if (done) {
        this.#hasEnded = true
        this.#handler.onResponseEnd?.(this, {})
      } else this.#handler.onResponseData?.(this, value)
    }
    this.#isGiving = false
  }
}

function bytesOf(body: Content['body']): Buffer {
  if (body === undefined) return Buffer.alloc(0)
  if (typeof body === 'string') return Buffer.from(body)
  return Buffer.isBuffer(body) ? body : Buffer.concat(body)
}
