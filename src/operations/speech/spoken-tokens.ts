/** Estimates the audio tokens of a spoken text; a second has 21 (docs/money.md#media-prices). */
import type { Mapping } from '../../core/translator.ts'
import type { SentOutput } from '../../core/wire.ts'
import { perObject } from '../../lib/per-object.ts'
import type { SpeechRequest } from './request.ts'

/** Slower than speech usually is: 10 letters a second, in alphabets of any script, 3.5 syllables, or 1.5 words. */
const LETTER_TOKENS = 2
const SYLLABLE_TOKENS = 6
const WORD_TOKENS = 14

/** Hangul and what stands behind it: a character of those scripts is a syllable, often a word. */
const FIRST_SYLLABLE = 0x1100
/** Digits, and signs that are spoken by their names. */
const isWord = (character: string): boolean => /[\p{N}\p{S}#%&*/@\\_]/u.test(character)
const ascii = Uint8Array.from({ length: 128 }, (_, code) =>
  isWord(String.fromCharCode(code)) ? WORD_TOKENS : LETTER_TOKENS,
)

/** At usual speed, rather too many than too few. */
export function spokenTokens(text: string): number {
  let sum = 0
  for (const character of text) {
    const code = character.codePointAt(0)!
    sum += ascii[code] ?? (isWord(character) ? WORD_TOKENS : code < FIRST_SYLLABLE ? LETTER_TOKENS : SYLLABLE_TOKENS)
  }
  return sum
}

/** Speech that is slower than the estimate by this, and a minute of pauses, is honest. */
const SLOWNESS = 4
const PAUSES = 1_500

/** Models that read instructions and text as one prompt may speak both. */
const lengthOf = perObject(({ input, instructions = '', speed = 1 }: Readonly<SpeechRequest>) => {
  const slowly = Math.min(speed, 1)
  const usual = Math.ceil(spokenTokens(input) / slowly)
  const longest = SLOWNESS * (usual + Math.ceil(spokenTokens(instructions) / slowly)) + PAUSES
  return { usual, longest }
})

/** Tokens of an answer: at usual speed, which no lower limit cuts, and the limit beyond which no honest one goes. */
export function speechOutput(
  request: Readonly<SpeechRequest>,
  { maxOutput = Number.POSITIVE_INFINITY }: Mapping,
): SentOutput & { readonly limit: number; readonly least: number } {
  const { usual, longest } = lengthOf(request)
  const most = Math.min(longest, maxOutput)
  const least = Math.min(usual, most)
  return { limit: Math.min(Math.max(request.max_output ?? most, least), most), least }
}
