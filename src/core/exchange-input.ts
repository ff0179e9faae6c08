/** The input of an exchange: its body, read once, and how much that holds. */
import type { Body, RawStrings } from '../json/raw-strings.ts'
import type { Count } from '../json/shape.ts'
import type { StoredResponses } from './stored-responses.ts'
import type { NativeRequest } from './wire.ts'

/** JSON values, and bytes, of a request from which each step of the work on it is scheduled. */
const LARGE_VALUES = 2000
const LARGE_BYTES = 256 * 1024

/** How the listener gives a body, and the memory that it takes. */
export interface InputSource {
  /** Reads, bounds and parses the body; called at most once. */
  readonly body: () => Promise<Body>
  /** Takes memory for what texts of the body are parsed to, until the exchange ends. Throws 529 where there is none. */
  readonly memory?: { parse(bytes: number): void } | undefined
}

export class ExchangeInput {
  /** JSON values of the body, and of the conversation that it continues. */
  values = 0
  #bytes = 0
  /** Raw strings of the body, until it is released. */
  rawStrings: RawStrings | undefined = undefined
  /** The body as the client sent it, for codecs whose wire providers speak too; see `NativeForm`. */
  native: NativeRequest | undefined = undefined
  /** Finds the response that the request continues, and stores its own; undefined when the project stores none. */
  stored: StoredResponses | undefined = undefined
  /** Gets the body when it has been read; what it throws refuses the request. */
  inspect: ((body: unknown) => void) | undefined = undefined
  /** The parsed body, until it is released. */
  value: unknown = undefined
  readonly memory: InputSource['memory']
  readonly #body: InputSource['body']
  /** Values within texts of the body that are JSON themselves. */
  #inner = 0
  /** Frees what is held of the body beside its value. */
  #release: (() => void) | undefined = undefined

  constructor({ body, memory }: InputSource) {
    this.#body = body
    this.memory = memory
  }

  /** The parsed body. May be called once. */
  async read(): Promise<unknown> {
    const { value, rawStrings, values = 0, bytes = 0, release } = await this.#body()
    this.#release = release
    this.rawStrings = rawStrings
    this.value = value
    this.values = values
    this.#bytes = bytes
    this.inspect?.(value)
    return value
  }

  /** Texts of the body that are JSON themselves hold so much, which is parsed for some wires. Throws 529 without memory. */
  holds({ own, structure }: Count): void {
    this.#inner += own
    if (structure > 0) this.memory?.parse(structure)
  }

  /** Each step of the work on the request takes long enough to be scheduled. */
  get isLarge(): boolean {
    return this.#bytes > LARGE_BYTES || this.values + this.#inner > LARGE_VALUES
  }

  /** Releases all but the parsed body. */
  release(): void {
    this.rawStrings = undefined
    this.value = undefined
    this.#release?.()
    this.#release = undefined
  }
}
