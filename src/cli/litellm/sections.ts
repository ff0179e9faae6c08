/** Sections of files whose form is not known. */

/** A section of a YAML file. */
export type Section = Readonly<Record<string, unknown>>

export const isSection = (value: unknown): value is Section =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/** Empty for anything else. */
export const sectionOf = (value: unknown): Section => (isSection(value) ? value : {})
/** Empty for anything else. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
/** Undefined for an empty text and anything else. */
export const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value ? value : undefined)

/** A name of a model without marks on its letters: names of models are printable ASCII. */
export const plainName = (name: string): string => name.normalize('NFKD').replace(/\p{M}/gu, '')
