/** The maker of a model, by its id: each maker has rules of its own on this wire. */
import { type Mapping, perObject } from '../../src/plugin.ts'

/** Describes what the models of one maker accept. */
export interface Family {
  readonly maker: 'anthropic' | 'amazon' | 'mistral' | 'other'
  /** Accepts temperature and top_p. */
  readonly samples: boolean
  /** Accepts a schema for its answer, and strict tools. */
  readonly takesSchemas: boolean
  /** Can be forced to call a tool. */
  readonly forcible: boolean
  /** Accepts media in the result of a tool. */
  readonly showsResults: boolean
  /** Streams with tools. */
  readonly streamsTools: boolean
}

/** Matches ids of the wire, such as `eu.anthropic.claude-…`, and canonical ids, such as `claude-…`. */
const MAKERS: readonly [Family['maker'], RegExp][] = [
  ['anthropic', /anthropic\.|^claude-/],
  ['amazon', /amazon\.nova|^nova-/],
  ['mistral', /mistral/],
]
const NEVER_SAMPLES = /claude-(?:opus-4-[78]|(?:opus|sonnet|haiku|fable)-5)/
const REFUSES_SCHEMAS = /claude-(?:opus-4-[78]|(?:opus|sonnet|fable)-5)/
/** Models that always think, and a maker without forced tool choice. */
const NEVER_FORCED = /claude-(?:opus-5-5|fable-5)|meta\.|^llama/

/** For others: "This model doesn't support the image field for user messages." */
const SHOWS_RESULTS = /anthropic\.|^claude-|amazon\.nova|^nova-|llama-?4/
/** "This model doesn't support tool use in streaming mode." */
const NEVER_STREAMS_TOOLS = /meta\.|^llama/

/** Finds the family by the provider's model id. An inference profile hides that id, so the canonical id decides. */
export const familyOf = perObject(({ externalId, model }: Mapping): Family => {
  const id = externalId.includes(':application-inference-profile/') ? model.id : externalId
  return {
    maker: MAKERS.find(([, pattern]) => pattern.test(id))?.[0] ?? 'other',
    samples: !NEVER_SAMPLES.test(id),
    takesSchemas: !REFUSES_SCHEMAS.test(id),
    forcible: !NEVER_FORCED.test(id),
    showsResults: SHOWS_RESULTS.test(id),
    streamsTools: !NEVER_STREAMS_TOOLS.test(id),
  }
})
