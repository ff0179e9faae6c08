/** Sections of files whose form is not known. */

/** A section of a YAML file. */
export type Section = Readonly<Record<string, unknown>>

export { isObject as isSection, listIn as listOf, objectIn as sectionOf, textIn as textOf } from '../../json/json.ts'

/** A name of a model in printable ASCII, where marks, emoji, dashes, quotes and outer spaces are all that is not. */
export const plainName = (name: string): string =>
  name
    .replace(/\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\u200D/gu, '')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[\p{Pd}\u2212]/gu, '-')
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/[\u201C\u201D]/g, '"')
    .trim()
/** How `plainName` changes a name. */
export const PLAIN = 'in printable ASCII, without marks and emoji'
