/** Usage, cost and routing of an answer in the form of docs/contract.md#chat-answers. */
import type { Attempt } from '../core/attempt.ts'
import { costOf } from '../core/cost.ts'
import type { Exchange } from '../core/exchange.ts'
import { type Cost, toNumber } from '../core/money.ts'
import type { Target } from '../core/translator.ts'
import type { Usage } from '../core/usage.ts'

/** Unique per answer; a replay from the cache has the id of the answer that it repeats. */
export const answerIdOf = (ex: Exchange): string => (ex.answer.cached ?? ex).logId

/** Canonical id of the model that answered. */
export const answerModelOf = (ex: Exchange): string =>
  ex.answer.cached?.model ?? ex.target?.mapping.model.id ?? ex.requested.model

/** Id of the provider that answered; empty before that is known. */
export const answererOf = (ex: Exchange): string => ex.answer.cached?.provider ?? ex.target?.mapping.provider.id ?? ''

/** Omits zero counts. All answers have objects of one shape: spreading objects costs microseconds. */
const some = (count: number | undefined): number | undefined => (count ? count : undefined)

/** Marks usage that the gateway has estimated; undefined for reported usage. */
export const usageInfo = ({ estimated }: Exchange): string | undefined =>
  estimated ? 'The provider reported no usage; these token counts are estimated.' : undefined

/** The output limit of each choice where another one was sent than the caller's; undefined where that was sent. */
export function replacedLimitOf({ outbound, request, endpoint, target }: Exchange): number | undefined {
  const asked = request && endpoint.operation?.output?.(request).limit
  const raised = asked !== undefined && Number.isFinite(outbound.output?.limit) ? outbound.output?.limit : undefined
  const own = target?.mapping.maxOutput
  return raised ?? outbound.limit?.tokens ?? (asked !== undefined && own !== undefined && asked > own ? own : undefined)
}

/** The cost in USD; null while the price is unknown. Call it after the last event, as all that follows. */
export const usdOf = ({ meter: { cost } }: Exchange): number | null => cost && toNumber(cost.total)

/** The `usage` object. */
export function usageOf(ex: Exchange): object {
  const { usage } = ex
  const prompt = usage.prompt ?? 0
  const completion = usage.completion ?? 0
  const reasoning = usage.internal_reasoning ?? 0
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    reasoning_tokens: some(reasoning),
    prompt_tokens_details: promptDetails(usage),
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      image_tokens: some(usage.image_output),
      audio_tokens: some(usage.output_audio),
    },
    cost: usdOf(ex),
    cost_details: costDetails(ex.meter.cost, ex),
    info: usageInfo(ex),
  }
}

function promptDetails(usage: Usage): object {
  const write5m = usage.input_cache_write ?? 0
  const write1h = usage.input_cache_write_1h ?? 0
  const written = some(write5m + write1h)
  return {
    cached_tokens: usage.input_cache_read ?? 0,
    cache_write_tokens: written,
    cache_creation_tokens: written,
    cache_creation: written && { ephemeral_5m_input_tokens: write5m, ephemeral_1h_input_tokens: write1h },
    audio_tokens: some(usage.input_audio),
    video_tokens: some(usage.input_video),
  }
}

/** Saving against the cost without a cache; negative when more was written than read. */
function savingOf({ usage, target, terms }: Exchange, cost: Cost): bigint {
  const plain = { ...usage }
  for (const axis of ['input_cache_read', 'input_cache_write', 'input_cache_write_1h'] as const) delete plain[axis]
  return (costOf(plain, target?.price, terms)?.total ?? cost.total) - cost.total
}

/** The `cost_details` object, in USD. Costs are null where the price is unknown. */
export function costDetails(cost: Cost | null, ex: Exchange): object {
  const { cached, storage } = ex.answer
  const { autoCached } = ex.outbound
  const usd = (amount: bigint | undefined) => (amount === undefined ? 0 : toNumber(amount))
  const prompt = cost ? cost.input + cost.cachedInput + cost.cacheWrite : 0n
  const nullable = (amount: bigint | undefined) => (cost ? usd(amount) : null)
  return {
    upstream_inference_cost: usd(cost ? cost.total - cost.webSearch : 0n),
    upstream_inference_prompt_cost: usd(prompt),
    upstream_inference_completions_cost: usd(cost?.output),
    total_cost: nullable(cost?.total),
    input_cost: nullable(cost?.input),
    output_cost: nullable(cost?.output),
    cached_input_cost: nullable(cost?.cachedInput),
    cache_write_input_cost: nullable(cost?.cacheWrite),
    request_cost: nullable(cost?.request),
    web_search_cost: nullable(cost?.webSearch),
    image_input_cost: nullable(cost?.imageInput),
    image_output_cost: nullable(cost?.imageOutput),
    audio_input_cost: nullable(cost?.audioInput),
    data_storage_cost: cached ? 0 : storage === undefined ? null : usd(storage),
    cache_saving: autoCached && cost ? usd(savingOf(ex, cost)) : undefined,
  }
}

/** The `metadata` object. */
export function metadataOf(ex: Exchange): object {
  const mapping = ex.target?.mapping
  return {
    request_id: ex.id,
    log_id: ex.logId,
    requested_model: ex.requested.model,
    requested_provider: ex.requested.provider,
    used_model: ex.answer.cached?.model ?? mapping?.model.id ?? '',
    used_provider: answererOf(ex),
    underlying_used_model: ex.answer.cached?.externalId ?? mapping?.externalId ?? '',
    used_region: ex.target?.region ?? null,
    organization_id: ex.caller.principal?.orgId,
    project_id: ex.caller.principal?.projectId,
    discount: ex.answer.cached ? null : discountOf(ex.target),
    used_service_tier: ex.answer.servedTier,
    cached: ex.answer.cached ? true : undefined,
    max_tokens: replacedLimitOf(ex),
    stopped_by: ex.answer.stoppedBy,
    healing_skipped: ex.answer.healingSkipped,
    routing: ex.attempts.map(attemptOf),
  }
}

/** The discount as a part of the price; null without one. */
function discountOf(target: Target | undefined): number | null {
  const { discount = 0 } = target?.price ?? {}
  return discount > 0 ? discount / 1e6 : null
}

/** The gateway's credentials appear only as fingerprints. */
function attemptOf({ target, status, succeeded, errorType }: Attempt): object {
  const { credential } = target
  const own = credential?.source === 'byok' ? credential : undefined
  return {
    provider: target.provider.id,
    model: target.mapping.model.id,
    region: target.region,
    status_code: status,
    error_type: errorType,
    succeeded,
    apiKeyHash: credential?.fingerprint || undefined,
    credentialSource: credential?.source ?? 'platform',
    providerKeyId: own?.id || undefined,
    providerKeyLabel: own?.label,
  }
}
