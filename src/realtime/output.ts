/** What a response of a session has given so far, in tokens. */
import { estimateTokens, type Usage } from '../core/usage.ts'

/** docs/contract.md#media-prices. */
const OUTPUT_TOKENS_PER_SECOND = 21

export class Output {
  #textBytes = 0
  #audioBytes = 0
  readonly #rate: number

  constructor(rate: number) {
    this.#rate = rate
  }

  get isEmpty(): boolean {
    return this.#textBytes === 0 && this.#audioBytes === 0
  }

  text(bytes: number): void {
    this.#textBytes += bytes
  }

  audio(bytes: number): void {
    this.#audioBytes += bytes
  }

  get audioTokens(): number {
    return Math.ceil((this.#audioBytes / this.#rate) * OUTPUT_TOKENS_PER_SECOND)
  }

  get tokens(): number {
    return estimateTokens(this.#textBytes) + this.audioTokens
  }

  /** With the prompt that is expected. */
  usage(expected: Usage): Usage {
    const audio = this.audioTokens
    return { ...expected, completion: this.tokens, output_audio: audio }
  }
}
