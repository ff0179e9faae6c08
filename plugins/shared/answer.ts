/** Whole answers: their decoders, also of a count of tokens, and the errors that they hold. */
import {
  type Bounds,
  billed,
  type CountForm,
  type Decoder,
  type Event,
  errorReader,
  errors,
  type Frame,
  GatewayError,
  guessStatus,
  isObject,
  type Json,
  parseAnswer,
  readProviderError,
  type Target,
  type Usage,
  upstreamError,
} from '../../src/plugin.ts'
import { findingsError } from './findings.ts'

/** `read` converts the body; a GatewayError that it throws is the answer's error. */
export class WholeDecoder implements Decoder {
  readonly #read: (frame: Frame) => Event[]
  protected isRead = false

  constructor(read: (frame: Frame) => Event[]) {
    this.#read = read
  }

  get done(): boolean {
    return this.isRead
  }

  frame(frame: Frame): Event[] {
    this.isRead = true
    try {
      return this.#read(frame)
    } catch (thrown) {
      return failed(thrown)
    }
  }

  end(): Event[] {
    return this.isRead ? [] : [{ type: 'error', error: errors.invalidAnswer('it is empty') }]
  }
}

function failed(thrown: unknown): Event[] {
  if (!(thrown instanceof GatewayError)) throw thrown
  return [{ type: 'error', error: thrown }]
}

/** The body as JSON. Throws the error of an answer that is not JSON, or beyond its bounds: those of any answer by default. */
export function parsed(frame: Frame, bounds?: Bounds): unknown {
  try {
    return parseAnswer(frame.data, bounds)
  } catch (thrown) {
    throw notJson(thrown)
  }
}

const notJson = (thrown: unknown): unknown =>
  thrown instanceof SyntaxError ? errors.invalidAnswer('it is not JSON') : thrown

/** White space between the values of JSON, as bytes. */
const SPACE = 0x20

/** The index from `from` on of the first byte that is no white space, or the length of `bytes`. */
export function afterSpace(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at]! <= SPACE) at++
  return at
}

/** `tokensIn` extracts the count from an answer; undefined is an error. */
export const counter = (encode: CountForm['encode'], tokensIn: (answer: Json) => number | undefined): CountForm => ({
  encode,
  decoder: () =>
    new WholeDecoder(frame => {
      const answer = parsed(frame)
      const tokens = isObject(answer) ? tokensIn(answer) : undefined
      if (tokens === undefined) throw errors.invalidAnswer('it holds no count of tokens')
      // The prompt was counted and no answer was generated.
      return [
        { type: 'usage', usage: { prompt: 0, completion: 0 } },
        { type: 'result', value: { tokens } },
      ]
    }),
})

/** The named fields of `body`. */
export const only = (body: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.flatMap(name => (body[name] === undefined ? [] : [[name, body[name]]])))

/** The error of a status of 400 or above. */
export const plainError = errorReader(findingsError)

/** The error in an answer (E5); else an error that the answer lacks `what`, such as "a list of results". */
export function errorIn(answer: unknown, what: string, target: Target): GatewayError {
  const reported = readProviderError(answer)
  if (!reported) return errors.invalidAnswer(`it holds no ${what}`)
  return upstreamError(guessStatus(reported, target), reported, target)
}

/** Tokens that the operator pays for: of an answer, and of it with its prompt, whose tokens cost a fraction of that. */
const MAX_FREE = { written: 4096, all: 32_768 }

/**
 * Returns the failure of an answer that ends by mistake, such as with a call that cannot be read. Another provider may do
 * better, and the operator pays for this one. Where its `usage` is large, the caller pays: it may have wanted no more.
 */
export const malformed = (error: GatewayError, { prompt = 0, completion = 0 }: Usage = {}): GatewayError =>
  completion > MAX_FREE.written || prompt + completion > MAX_FREE.all ? billed(error) : error
