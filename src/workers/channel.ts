/** Calls between the primary process and a worker, over Node's IPC channel. */
import { type ErrorInit, GatewayError } from '../lib/error.ts'

/** Calls that one side serves, by name. Arguments and results must be JSON values. */
export type Calls = Readonly<Record<string, (argument: never) => unknown>>

/** One end of the channel. */
export interface IpcPort {
  send(message: object): void
  /** Messages arrive in the order of sending. */
  onMessage(listener: (message: object) => void): void
  onClose(listener: () => void): void
}

type Message =
  | { readonly call: string; readonly argument: unknown; readonly id?: number }
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: Failure }
type Failure = Pick<Error, 'name' | 'message'> & Partial<NodeJS.ErrnoException & { port: number; status: number }>

/** Default time limit of a call, in milliseconds. */
const TIMEOUT_MS = 5_000

interface Pending {
  readonly timer: NodeJS.Timeout | undefined
  resolve(result: unknown): void
  reject(reason: Error): void
}

/** `Theirs`: the calls that the other side serves. */
export class Channel<Theirs extends Calls> {
  readonly #wire: IpcPort
  readonly #serves: Calls
  readonly #pending = new Map<number, Pending>()
  #calls = 0
  #closed = false

  constructor(wire: IpcPort, serves: Calls) {
    this.#wire = wire
    this.#serves = serves
    wire.onMessage(message => this.#receive(message as Message))
    wire.onClose(() => this.#close())
  }

  /** Rejects with the error of the other side, when the channel closes, or after `timeoutMs` without an answer. */
  call<N extends keyof Theirs & string>(
    name: N,
    argument: Parameters<Theirs[N]>[0],
    timeoutMs = TIMEOUT_MS,
  ): Promise<Awaited<ReturnType<Theirs[N]>>> {
    if (this.#closed) return Promise.reject(new Error(`"${name}": the other process has ended`))
    const id = ++this.#calls
    return new Promise((resolve, reject) => {
      const late = () => {
        this.#pending.delete(id)
        reject(new Error(`"${name}": the other process has not answered for ${timeoutMs} ms`))
      }
      const timer = Number.isFinite(timeoutMs) ? setTimeout(late, timeoutMs) : undefined
      this.#pending.set(id, { timer, resolve: resolve as Pending['resolve'], reject })
      this.#send({ call: name, argument, id })
    })
  }

  /** Sends without waiting for an answer; does nothing on a closed channel. */
  notify<N extends keyof Theirs & string>(name: N, argument: Parameters<Theirs[N]>[0]): void {
    this.#send({ call: name, argument })
  }

  #receive(message: Message): void {
    if ('call' in message) {
      void this.#serve(message.call, message.argument, message.id)
      return
    }
    const pending = this.#pending.get(message.id)
    if (!pending) return
    this.#pending.delete(message.id)
    clearTimeout(pending.timer)
    if ('error' in message) pending.reject(revived(message.error))
    else pending.resolve(message.result)
  }

  async #serve(name: string, argument: unknown, id: number | undefined): Promise<void> {
    // Resolve calls that wait for an answer before serving messages sent after that answer, even when both arrive at
    // once.
    await undefined
    try {
      const returned = this.#serves[name]!(argument as never)
      const result = returned instanceof Promise ? await returned : returned
      if (id !== undefined) this.#send({ id, result })
    } catch (thrown) {
      if (id === undefined) throw thrown
      this.#send({ id, error: failure(thrown) })
    }
  }

  #send(message: Message): void {
    if (!this.#closed) this.#wire.send(message)
  }

  #close(): void {
    this.#closed = true
    for (const { timer, reject } of this.#pending.values()) {
      clearTimeout(timer)
      reject(new Error('the other process has ended'))
    }
    this.#pending.clear()
  }
}

/** An error as it is sent; its stack stays between the two processes. */
function failure(thrown: unknown): Failure {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown) }
  // The position of a ConfigError is not part of its message.
  const message = thrown.name === 'ConfigError' ? String(thrown) : thrown.message
  return { ...thrown, name: thrown.name, message, cause: undefined }
}

const isGatewayError = (failure: Failure): failure is Failure & ErrorInit => failure.name === 'GatewayError'

function revived(failure: Failure): Error {
  if (isGatewayError(failure)) return new GatewayError(failure)
  return Object.assign(new Error(failure.message), failure)
}
