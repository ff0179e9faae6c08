/** Speech: `POST /v1/audio/speech` (docs/contract.md#speech). */
import type { Mapping } from '../../core/catalog.ts'
import type { AnswerMeasure, Operation, Requirement } from '../../core/operation.ts'
import { CHARACTERS, textSize, type Usage } from '../../core/usage.ts'
import { usualBytesPerSecond } from '../../media/length.ts'
import { demo } from './demo.ts'
import { ANY_VOICE, type SpeechRequest } from './request.ts'
import { speechOutput } from './spoken-tokens.ts'

/** Of audio whose provider counts none (docs/money.md#media-prices). */
const TOKENS_PER_SECOND = 21

const wireOf = ({ wires }: Mapping) => wires.get('speech')
const mostOf = (mapping: Mapping): number | undefined =>
  mapping.maxInputCharacters ?? wireOf(mapping)?.maxInputCharacters

const requirements: readonly Requirement<SpeechRequest>[] = [
  {
    param: 'response_format',
    what: 'this format',
    needed: ({ response_format }) => response_format !== undefined,
    offers: mapping => wireOf(mapping)?.outputFormats,
    met: (mapping, { response_format }) => wireOf(mapping)?.outputFormats?.includes(response_format!) ?? true,
  },
  {
    param: 'voice',
    what: 'this voice',
    needed: ({ voice }) => voice !== undefined,
    offers: ({ voices }) => voices && Object.keys(voices).filter(name => name !== 'default' && name !== ANY_VOICE),
    met: ({ voices }, { voice }) => !voices || Object.hasOwn(voices, voice!) || Object.hasOwn(voices, ANY_VOICE),
  },
  {
    param: 'input',
    what: 'so long a text',
    needed: () => true,
    offers: mostOf,
    met: (mapping, { characters }) => characters <= (mostOf(mapping) ?? Infinity),
  },
]

/** Priced by characters for models whose `tokenizer` is `CHARACTERS`, else by tokens. */
export const speech: Operation<'speech'> = {
  name: 'speech',
  impliedBy: ({ output }) => output.length === 1 && output[0] === 'audio',
  isPriced: ({ rates: { prompt, completion, output_audio } }, { tokenizer }) =>
    prompt !== undefined && (tokenizer === CHARACTERS || (output_audio ?? completion) !== undefined),
  requirements,
  promptSize: ({ input, instructions = '' }) => textSize(input) + textSize(instructions),
  characters: ({ characters }) => characters,
  extras(request, mapping) {
    if (mapping.model.tokenizer === CHARACTERS) return {}
    const { least } = speechOutput(request, mapping)
    return { completion: least, output_audio: least }
  },
  expectedOutput: (request, mapping) =>
    mapping.model.tokenizer === CHARACTERS ? undefined : speechOutput(request, mapping),
  unaffordable: { what: 'its speech', instead: 'send a shorter text' },
  bounded: (request, tokens) => ({ ...request, max_output: tokens }),
  measure: (contentType, { tokenizer }) => (tokenizer === CHARACTERS ? undefined : new SpeechMeasure(contentType)),
  tuning: { speed: 'speed', instructions: 'instructions' },
  neverReplayed: true,
  demo,
}

class SpeechMeasure implements AnswerMeasure {
  readonly #bytesPerSecond: number
  #bytes = 0

  constructor(contentType: string) {
    this.#bytesPerSecond = usualBytesPerSecond(contentType)
  }

  add(bytes: Buffer): void {
    this.#bytes += bytes.length
  }

  get tokens(): number {
    return Math.ceil((this.#bytes / this.#bytesPerSecond) * TOKENS_PER_SECOND)
  }

  get usage(): Usage {
    const { tokens } = this
    return { completion: tokens, output_audio: tokens }
  }
}
