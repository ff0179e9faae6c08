/** A refusal in the form of the Converse API, and what its rules share. */
import { Refusal } from './rules.mjs'

/** Its errors have no `error`. */
class BedrockRefusal extends Refusal {
  constructor(status, message) {
    super(status, { error: { message } })
    this.body = { message }
  }
}

export function refuse(message, status = 400) {
  throw new BedrockRefusal(status, message)
}

export const words = text => new Set(text.split(/\s+/))

/** Families by model id. */
export const is = {
  claude: model => model.includes('anthropic.'),
  nova: model => model.includes('amazon.nova'),
  mistral: model => model.includes('mistral.'),
  meta: model => model.includes('meta.'),
}
/** Versions of Claude that refuse what older ones take. */
export const refusesSampling = /opus-5|fable-5|sonnet-5|haiku-5|opus-4-[78]/
export const refusesSchemas = /opus-4-[78]|(opus|sonnet|fable)-5/
export const refusesPrefill = /opus-4-[678]|(opus|sonnet|haiku|fable)-5/
export const thinksByDefault = /(opus|sonnet|haiku|fable)-5/
export const refusesForce = /opus-5-5|fable-5/
