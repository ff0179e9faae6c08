/** A mapping in one of its regions: what scores, health and stickiness are about. */

import type { Price } from '../core/money.ts'
import { seriesOf } from '../core/offer.ts'
import { type Credential, REGION } from '../core/provider-settings.ts'
import type { Mapping, Target } from '../core/translator.ts'
import { perObject } from '../lib/per-object.ts'

/** One mapping and region: the unit that is scored, and that circuits, measurements and affinity name by `key`. */
export interface Candidate {
  /** `provider/model`, with `@region` where the provider has an address for each, and `owner:` where it has one. */
  readonly key: string
  readonly mapping: Mapping
  readonly region: string | undefined
  /** The provider's address there; undefined where it has but one. */
  readonly baseUrl: string | undefined
  /** Higher prices for longer prompts, from the lowest bound on; the first one is for all. */
  readonly rates: readonly Rates[]
  /** The model puts out images and no text: its price is that of an image, and is all in `rates[0].input`. */
  readonly image: boolean
}

/** Pico-USD per token, as numbers: scores need no exactness. Undefined where unknown. */
interface Rates {
  /** For prompts of more tokens than this. */
  readonly above: number
  readonly input: number | undefined
  readonly output: number | undefined
  readonly cached: number | undefined
}

/** One for each region, or the only one. The same objects on every call. */
export const candidatesOf = perObject((mapping: Mapping): readonly Candidate[] => {
  const { baseUrl } = mapping.provider
  const regions = baseUrl.includes(REGION) ? mapping.regions : [undefined]
  return regions.map(region => candidateIn(mapping, region))
})

/** A target with the candidate that it belongs to. */
export interface CandidateTarget {
  readonly candidate: Candidate
  readonly target: Target
  /** The candidate's key and the credential. */
  readonly key: string
  /** The circuit of its credential at all offers of the provider; undefined for the only credential. */
  readonly account: string | undefined
  /** The circuit of polls, for a target that creates jobs. */
  readonly polls: string | undefined
}

/** Returns the same object on every call. */
export const candidateTargetOf = perObject((target: Target): CandidateTarget => {
  const all = candidatesOf(target.mapping)
  const candidate = all.length === 1 ? all[0]! : all.find(({ region }) => region === target.region)!
  const key = credentialKeyOf(candidate, target.credential)
  const account = accountKeyOf(target.mapping, target.credential)
  return { candidate, target, key, account, polls: target.translator.job && pollKeyOf(target) }
})

/** The circuit of a credential at a candidate. */
export const credentialKeyOf = ({ key }: Candidate, credential: Pick<Credential, 'id'> | undefined): string =>
  `${key}#${credential?.id ?? ''}`

/** The circuit of one of several credentials at all offers of its provider. */
export function accountKeyOf(
  { provider }: Pick<Mapping, 'provider'>,
  credential: Pick<Credential, 'id' | 'weight'> | undefined,
): string | undefined {
  if (credential?.weight === undefined) return undefined
  return `${provider.owner === undefined ? '' : `${provider.owner}:`}${provider.id}#${credential.id}`
}

function candidateIn(mapping: Mapping, region: string | undefined): Candidate {
  const { model, provider } = mapping
  const image = model.output.includes('image') && !model.output.includes('text')
  return {
    key: keyOf(mapping, region),
    mapping,
    region,
    baseUrl: region === undefined ? undefined : provider.baseUrl.replaceAll(REGION, region),
    rates: image ? [{ ...unknown, input: imagePrice(mapping) }] : tokenRates(mapping.price),
    image,
  }
}

function keyOf({ model, provider }: Mapping, region: string | undefined): string {
  const { owner = '' } = provider
  const name = `${owner && `${owner}:`}${provider.id}/${seriesOf(model)}`
  return region === undefined ? name : `${name}@${region}`
}

/** The circuit of polls of the jobs that a target creates. */
export const pollKeyOf = ({
  mapping,
  region,
}: Pick<Candidate, 'mapping'> & { readonly region?: string | undefined }): string => `${keyOf(mapping, region)} polls`

const unknown: Rates = { above: 0, input: undefined, output: undefined, cached: undefined }

function tokenRates(price: Price | undefined): Rates[] {
  if (!price) return [unknown]
  return [{ above: 0, rates: price.rates }, ...price.tiers].map(({ above, rates }) => ({
    above,
    input: numeric(rates.prompt),
    output: numeric(rates.completion),
    cached: numeric(rates.input_cache_read),
  }))
}

/** Returns the price of the cheapest size, else of a request, else of an image's tokens. */
function imagePrice({ price, pricingBySize }: Mapping): number | undefined {
  const bySize = Object.values(pricingBySize?.per_image ?? {}).map(usd => Number(usd) * 1e12)
  if (bySize.length > 0) return Math.min(...bySize)
  return numeric(price?.rates.request) ?? numeric(price?.rates.image_output)
}

const numeric = (rate: bigint | undefined): number | undefined => (rate === undefined ? undefined : Number(rate))
