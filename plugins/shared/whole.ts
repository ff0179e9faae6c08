/** Decoders of an unstreamed answer, and of a count of tokens, which is one. */
import {
  type Bounds,
  type CountForm,
  type Decoder,
  type Event,
  errors,
  type Frame,
  GatewayError,
  isObject,
  type Json,
  parseAnswer,
} from '../../src/plugin.ts'

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
