/** Decoders of an unstreamed answer. */
import {
  type AnswerBounds,
  atOnce,
  type Decoder,
  type Event,
  errors,
  type Frame,
  GatewayError,
  parseAnswer,
  plainValue,
  valueSteps,
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

/** The same where `read` takes steps: for bodies with bounds of their own, or that pass without being parsed. */
export class SteppedDecoder extends WholeDecoder {
  readonly #readSteps: (frame: Frame) => Generator<undefined, Event[]>

  constructor(read: (frame: Frame) => Generator<undefined, Event[]>) {
    super(frame => atOnce(read(frame)))
    this.#readSteps = read
  }

  *steps(frame: Frame): Generator<undefined, Event[]> {
    this.isRead = true
    try {
      return yield* this.#readSteps(frame)
    } catch (thrown) {
      return failed(thrown)
    }
  }
}

function failed(thrown: unknown): Event[] {
  if (!(thrown instanceof GatewayError)) throw thrown
  return [{ type: 'error', error: thrown }]
}

/** The body as JSON. Throws the error of an answer that is not JSON, or beyond the bounds of any answer. */
export function parsed(frame: Frame): unknown {
  try {
    return frame.parsed ? plainValue(frame.parsed) : parseAnswer(frame.data)
  } catch (thrown) {
    throw notJson(thrown)
  }
}

/** The same, in steps where the body is large. */
export function* parsedInSteps(frame: Frame, bounds?: AnswerBounds): Generator<undefined, unknown> {
  try {
    return yield* valueSteps(frame, bounds)
  } catch (thrown) {
    throw notJson(thrown)
  }
}

const notJson = (thrown: unknown): unknown =>
  thrown instanceof SyntaxError ? errors.invalidAnswer('it is not JSON') : thrown
