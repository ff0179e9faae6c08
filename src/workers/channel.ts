/** Calls between the primary and a worker, over the channel that Node keeps between a process and its child. */
import { type ErrorInit, GatewayError } from '../core/error.ts'

/** What one side lets the other call, by name. Arguments and results are what JSON can say. */
export type Calls = Readonly<Record<string, (argument: never) => unknown>>

/** One end of the channel. */
export interface IpcPort {
  send(message: object): void
  /** Messages arrive in the order in which they were sent. */
  onMessage(listener: (message: object) => void): void
  onClose(listener: () => void): void
}

type Message =
  | { readonly call: string; readonly argument: unknown; readonly id?: number }
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: Failure }
type Failure = Pick<Error, 'name' | 'message'> & Partial<NodeJS.ErrnoException & { port: number; status: number }>

/** How long an answer may take. */
const PATIENCE_MS = 5_000

interface Pending {
  readonly timer: NodeJS.Timeout | undefined
  resolve(result: unknown): void
  reject(reason: Error): void
}

/** `Theirs` are the calls that the other side serves. */
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

  /** Rejects with what was thrown there, when the channel closes, and when there is no answer for `patienceMs`. */
  call<N extends keyof Theirs & string>(
    name: N,
    argument: Parameters<Theirs[N]>[0],
    patienceMs = PATIENCE_MS,
  ): Promise<Awaited<ReturnType<Theirs[N]>>> {
    if (this.#closed) return Promise.reject(new Error(`"${name}": the other process has ended`))
    const id = ++this.#calls
    return new Promise((resolve, reject) => {
      const late = () => {
        this.#pending.delete(id)
        reject(new Error(`"${name}": the other process has not answered for ${patienceMs} ms`))
      }
      const timer = Number.isFinite(patienceMs) ? setTimeout(late, patienceMs) : undefined
      this.#pending.set(id, { timer, resolve: resolve as Pending['resolve'], reject })
      this.#send({ call: name, argument, id })
    })
  }

  /** Does not wait for an answer; nothing comes of it when the channel is closed. */
  tell<N extends keyof Theirs & string>(name: N, argument: Parameters<Theirs[N]>[0]): void {
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
    // Who waits for an answer goes on before what was sent after that answer is served, also when both arrive at once.
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

/** What is told of an error; nobody beyond the two processes sees its stack. */
function failure(thrown: unknown): Failure {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown) }
  // A fault of configuration is told with its position, which its message lacks.
  const message = thrown.name === 'ConfigError' ? String(thrown) : thrown.message
  return { ...thrown, name: thrown.name, message, cause: undefined }
}

const isRefusal = (told: Failure): told is Failure & ErrorInit => told.name === 'GatewayError'

function revived(told: Failure): Error {
  if (isRefusal(told)) return new GatewayError(told)
  return Object.assign(new Error(told.message), told)
}
