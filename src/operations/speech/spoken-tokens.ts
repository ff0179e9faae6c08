/** What a text comes to when it is spoken, in tokens of audio, of which a second has 21 (docs/contract.md#media-prices). */

/** Slower than speech usually is: 10 letters a second, in alphabets of any script, 3.5 syllables, or 1.5 words. */
const LETTER = 2
const SYLLABLE = 6
const WORD = 14

/** Hangul and what stands behind it: a character of those scripts is a syllable, often a word. */
const FIRST_SYLLABLE = 0x1100
/** Digits, and signs that are spoken by their names. */
const isWord = (character: string): boolean => /[\p{N}\p{S}#%&*/@\\_]/u.test(character)
const ascii = Uint8Array.from({ length: 128 }, (_, code) => (isWord(String.fromCharCode(code)) ? WORD : LETTER))

/** At usual speed, rather too many than too few. */
export function spokenTokens(text: string): number {
  let sum = 0
  for (const character of text) {
    const code = character.codePointAt(0)!
    sum += ascii[code] ?? (isWord(character) ? WORD : code < FIRST_SYLLABLE ? LETTER : SYLLABLE)
  }
  return sum
}
