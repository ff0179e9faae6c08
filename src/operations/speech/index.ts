/** Speech: `POST /v1/audio/speech` (docs/contract.md#speech). */

import {
  type AnswerMeasure,
  type Operation,
  type Requirement,
  SimulatedError,
  type Simulation,
} from '../../core/operation.ts'
import type { Mapping } from '../../core/translator.ts'
import { CHARACTERS, textSize, type Usage } from '../../core/usage.ts'
import { wavHead } from '../../lib/wav.ts'
import { usualBytesPerSecond } from '../../media/length.ts'
import { speechTokens } from '../../metering/audio.ts'
import { ANY_VOICE, type SpeechRequest } from './request.ts'
import { speechOutput } from './spoken-tokens.ts'

const DEMO_RATE = 24_000
const DEMO_PITCH = 440
const DEMO_MS_PER_CHARACTER = 20
const DEMO_MAX_MS = 10_000
const DEMO_CHUNK = 16 * 1024

/** Simulates OpenAI's speech API: a tone, the longer the longer the text, as WAV or as plain samples. */
const demo: Readonly<Record<string, Simulation>> = {
  '/audio/speech'({ json }) {
    const { input, response_format: format = 'wav' } = json as { input: string; response_format?: string }
    if (format !== 'wav' && format !== 'pcm') {
      throw new SimulatedError('response_format: the demo makes wav and pcm', 'response_format')
    }
    const audio = tone(Math.min(DEMO_MAX_MS, input.length * DEMO_MS_PER_CHARACTER))
    const whole = format === 'wav' ? Buffer.concat([wavHead(DEMO_RATE, audio.length), audio]) : audio
    const chunks: Buffer[] = []
    for (let at = 0; at < whole.length; at += DEMO_CHUNK) chunks.push(whole.subarray(at, at + DEMO_CHUNK))
    return { contentType: `audio/${format}`, chunks }
  },
}

/** 16-bit samples. */
function tone(ms: number): Buffer {
  const samples = Math.round((ms / 1000) * DEMO_RATE)
  const audio = Buffer.alloc(samples * 2)
  for (let at = 0; at < samples; at++)
    audio.writeInt16LE(Math.round(Math.sin((2 * Math.PI * DEMO_PITCH * at) / DEMO_RATE) * 8000), at * 2)
  return audio
}

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
  measure: (contentType, { tokenizer }, limit) =>
    tokenizer === CHARACTERS ? undefined : new SpeechMeasure(contentType, limit),
  tuning: { speed: 'speed', instructions: 'instructions' },
  neverReplayed: true,
  demo,
}

class SpeechMeasure implements AnswerMeasure {
  readonly #bytesPerSecond: number
  readonly #limit: number
  #bytes = 0

  constructor(contentType: string, limit = Number.POSITIVE_INFINITY) {
    this.#bytesPerSecond = usualBytesPerSecond(contentType)
    this.#limit = limit
  }

  add(bytes: Buffer): void {
    this.#bytes += bytes.length
  }

  get tokens(): number {
    return Math.min(speechTokens(this.#bytes / this.#bytesPerSecond), this.#limit)
  }

  get usage(): Usage {
    const { tokens } = this
    return { completion: tokens, output_audio: tokens }
  }
}
