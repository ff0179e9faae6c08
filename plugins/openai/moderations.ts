/** OpenAI's moderation wire, `openai.moderations` (docs/contributing/wire-sources.md#openai). */
import type { Json, ModerationRequest, ModerationResult, Target, WireRequest } from '../../src/plugin.ts'
import { plainError } from '../shared/error.ts'
import { isFlag, isScore, isTypes, membersOf, moderationWire } from '../shared/moderations.ts'

const encode = ({ input }: Readonly<ModerationRequest>, { mapping }: Target): WireRequest => ({
  path: '/moderations',
  body: { model: mapping.externalId, input },
})

function read({ flagged, categories, category_scores, category_applied_input_types }: Json): ModerationResult {
  const found = membersOf(categories, isFlag)
  return {
    flagged: typeof flagged === 'boolean' ? flagged : Object.values(found).includes(true),
    categories: found,
    category_scores: membersOf(category_scores, isScore),
    category_applied_input_types: membersOf(category_applied_input_types, isTypes),
  }
}

/** OpenAI's "Create moderation" API, `POST /moderations`. */
export const moderations = moderationWire('openai.moderations', encode, read, plainError)
