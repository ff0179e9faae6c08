/** The canonical request and answer of `POST /v1/moderations` (docs/contract.md#moderations). */
import { type Infer, s } from '../../core/schema.ts'

const MAX_INPUTS = 2048
/** The codec refuses an empty one: a `minLength` would count every character of a text of megabytes. */
const text = s.string()

const part = s.tagged(
  s.open({ type: s.enum('text'), text }),
  s.open({ type: s.enum('image_url'), image_url: s.open({ url: text }) }),
)
/** A text or an image of an input. */
export type ModerationPart = Infer<typeof part>

/** As clients send it (OpenAI's moderations API). */
export const moderationBody = s.open({
  model: s.maybe(s.string({ minLength: 1, maxLength: 256 })),
  input: s.either(
    text,
    s.array(text, { minItems: 1, maxItems: MAX_INPUTS }),
    s.array(part, { minItems: 1, maxItems: MAX_INPUTS }),
  ),
})

/** The canonical request. */
export interface ModerationRequest {
  readonly model: string
  /** Texts have a result each, parts have one together. */
  readonly input: string | readonly string[] | readonly ModerationPart[]
}

/** Categories of OpenAI's moderation (docs/contributing/wire-sources.md#openai): every result has all of them. */
export const categories = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/intent',
  'self-harm/instructions',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
] as const

/** One result, as a provider's wire tells it: what it does not know may be missing, and it may have categories of its own. */
export interface ModerationResult {
  readonly flagged: boolean
  readonly categories: Readonly<Record<string, boolean>>
  readonly category_scores: Readonly<Record<string, number>>
  readonly category_applied_input_types: Readonly<Record<string, readonly string[]>>
}

/** The value of a moderations `result`. */
export interface ModerationAnswer {
  readonly results: readonly ModerationResult[]
}

/** True for an input of parts, which have one result together. */
export const isParts = (input: ModerationRequest['input']): input is readonly ModerationPart[] =>
  Array.isArray(input) && typeof input[0] === 'object'

/** How many results an answer must hold. */
export const resultsWanted = ({ input }: Readonly<ModerationRequest>): number =>
  typeof input === 'string' || isParts(input) ? 1 : input.length

declare module '../../core/ops.ts' {
  interface Ops {
    moderations: ModerationRequest
  }
}
