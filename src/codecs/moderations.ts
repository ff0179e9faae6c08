/** Client wire of `POST /v1/moderations` (docs/contract.md#moderations). */
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import { errors } from '../lib/error.ts'
import {
  categories,
  isParts,
  type ModerationAnswer,
  type ModerationPart,
  type ModerationRequest,
  type ModerationResult,
  moderationBody,
} from '../operations/moderations/request.ts'
import { answerIdOf, answerModelOf } from './accounting.ts'
import { assertImageUrl, HTTPS_OR_DATA, isSecure } from './url.ts'
import { checkedBy, validator } from './validate.ts'
import { WholeEncoder } from './whole.ts'

const DEFAULT_MODEL = 'omni-moderation-latest'
const validate = validator(moderationBody)

/** An absent model is OpenAI's default. Images are `https:` or `data:` addresses. */
export const moderations = {
  wire: 'openai.moderations',
  decode(body): ModerationRequest {
    const { model, input } = validate(body)
    return { model: model ?? DEFAULT_MODEL, input: checked(input) }
  },
  encoder: ex => new WholeEncoder<ModerationAnswer>(ex, written),
  ...checkedBy(validate),
} satisfies Codec<'moderations'>

function checked(input: ModerationRequest['input']): ModerationRequest['input'] {
  if (isParts(input)) return input.map((part, index) => known(part, `input[${index}]`))
  if (typeof input === 'string') assertText(input, 'input')
  else for (const [index, text] of input.entries()) assertText(text, `input[${index}]`)
  return input
}

/** The known fields of a part. */
function known(part: ModerationPart, path: string): ModerationPart {
  if (part.type === 'text') {
    assertText(part.text, `${path}.text`)
    return { type: 'text', text: part.text }
  }
  const { url } = part.image_url
  assertImageUrl(url, `${path}.image_url.url`, HTTPS_OR_DATA)
  if (!/^data:/i.test(url) && !isSecure(url)) throw errors.urlNotAllowed(`${path}.image_url.url`, HTTPS_OR_DATA)
  return { type: 'image_url', image_url: { url } }
}

function assertText(text: string, path: string): void {
  if (text === '') throw errors.invalidField(path, 'must not be empty')
}

const written = ({ results }: ModerationAnswer, ex: Exchange): object => ({
  id: `modr-${answerIdOf(ex)}`,
  model: answerModelOf(ex),
  results: results.map(whole),
})

/** With every category, scores from 0 to 1, and the provider's additional fields (docs/contributing/edge-cases.md#media M17). */
function whole(result: ModerationResult): ModerationResult {
  return {
    flagged: result.flagged,
    categories: each(result.categories, false),
    category_scores: each(clamped(result.category_scores), 0),
    category_applied_input_types: each(result.category_applied_input_types, TEXT),
  }
}

const TEXT: readonly string[] = ['text']

/** Returns the same object when nothing is missing, as in most answers. */
function each<T>(given: Readonly<Record<string, T>>, missing: T): Readonly<Record<string, T>> {
  if (categories.every(category => category in given)) return given
  const all = Object.create(null) as Record<string, T>
  for (const category of categories) all[category] = missing
  return Object.assign(all, given)
}

function clamped(scores: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const isBeyond = (score: number) => score < 0 || score > 1
  const names = Object.keys(scores)
  if (!names.some(name => isBeyond(scores[name]!))) return scores
  const all = Object.create(null) as Record<string, number>
  for (const name of names) all[name] = Math.min(1, Math.max(0, scores[name]!))
  return all
}
