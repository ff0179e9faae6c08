/** Decoders of an unstreamed answer. */
import {
  type Bounds,
  type Decoder,
  type Event,
  errors,
  type Frame,
  GatewayError,
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
