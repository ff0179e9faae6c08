/** Decoder of an unstreamed answer. */
import {
  type Decoder,
  type Event,
  errors,
  type Frame,
  GatewayError,
  parseAnswer,
  plainValue,
} from '../../src/plugin.ts'

/** `read` converts the body; a GatewayError that it throws is the answer's error. */
export class WholeDecoder implements Decoder {
  readonly #read: (frame: Frame) => Event[]
  #done = false

  constructor(read: (frame: Frame) => Event[]) {
    this.#read = read
  }

  get done(): boolean {
    return this.#done
  }

  frame(frame: Frame): Event[] {
    this.#done = true
    try {
      return this.#read(frame)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      return [{ type: 'error', error: thrown }]
    }
  }

  end(): Event[] {
    return this.#done ? [] : [{ type: 'error', error: errors.invalidAnswer('it is empty') }]
  }
}

/** The body as JSON, with at most `most` values. Throws the error of an answer that is not JSON, or exceeds them. */
export function parsed(frame: Frame, most?: number): unknown {
  try {
    return frame.parsed
      ? plainValue(frame.parsed)
      : parseAnswer(frame.data, most === undefined ? undefined : { values: most })
  } catch (thrown) {
    if (thrown instanceof SyntaxError) throw errors.invalidAnswer('it is not JSON')
    throw thrown
  }
}
