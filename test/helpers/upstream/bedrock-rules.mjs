/** What the Converse API refuses, so that a translator which sends it fails its test. */
import { checkMessages } from './bedrock-message-rules.mjs'
import { is, refuse, refusesSampling, refusesSchemas, words } from './bedrock-refusal.mjs'
import { checkTools } from './bedrock-tool-rules.mjs'
import { knows } from './rules.mjs'

const fields = words(
  `messages system inferenceConfig toolConfig additionalModelRequestFields additionalModelResponseFieldPaths
  outputConfig serviceTier performanceConfig requestMetadata guardrailConfig promptVariables`,
)
const loneSurrogate = /\p{Surrogate}/u
/** What each family takes among `additionalModelRequestFields`. */
const extras = [
  [is.claude, words('thinking output_config tool_choice top_k anthropic_beta')],
  [is.nova, words('reasoningConfig inferenceConfig')],
  [() => true, words('reasoning_effort top_k')],
]

/** @param {Record<string, string | undefined>} headers @param {any} body @param {string[]} keys @param {URL} url */
export function check(headers, body, keys, url) {
  checkCredential(headers, keys)
  const segment = /\/model\/([^/]+)\//.exec(url.pathname)[1]
  if (segment !== encodeURIComponent(decodeURIComponent(segment))) refuse('The model id must be percent-encoded.')
  const model = decodeURIComponent(segment)
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) refuse('The content type must be application/json.')
  if (typeof body !== 'object' || body === null) refuse('The request body is not valid JSON.')
  checkStrings(body)
  for (const name of Object.keys(body)) if (!fields.has(name)) refuse(`The request has the unknown field ${name}.`)
  checkSettings(body, model)
  checkMessages(body, model)
  checkTools(body, model)
  checkCachePoints(body, model)
}

/** A bearer key, or a signature of the right form; what it signs is checked where signatures are made. */
function checkCredential(headers, keys) {
  const given = headers.authorization ?? ''
  const sigv4 =
    /^AWS4-HMAC-SHA256 Credential=[A-Z0-9]+\/(\d{8})\/[a-z0-9-]+\/bedrock\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=[0-9a-f]{64}$/.exec(
      given,
    )
  if (sigv4) {
    const [, day, signed] = sigv4
    const at = headers['x-amz-date'] ?? ''
    if (!/^\d{8}T\d{6}Z$/.test(at) || !at.startsWith(day)) refuse('Date in Credential scope does not match.', 403)
    const names = signed.split(';')
    if (names.join() !== [...names].sort().join() || !names.includes('host') || !names.includes('x-amz-date')) {
      refuse('SignedHeaders must be sorted and name host and x-amz-date.', 403)
    }
    return
  }
  const bearer = /^Bearer (.+)$/.exec(given)?.[1]
  if (bearer === undefined || !knows(keys, bearer)) {
    refuse('The security token included in the request is invalid.', 403)
  }
}

function checkStrings(value) {
  if (typeof value === 'string' && loneSurrogate.test(value)) refuse('The request body is not valid UTF-8.')
  if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      checkStrings(key)
      checkStrings(inner)
    }
  }
}

function checkSettings(body, model) {
  const { maxTokens, temperature, topP } = body.inferenceConfig ?? {}
  const more = body.additionalModelRequestFields ?? {}
  const allowed = extras.find(([test]) => test(model))[1]
  for (const name of Object.keys(more)) if (!allowed.has(name)) refuse(`extraneous key [${name}] is not permitted`)
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && maxTokens > 0)) refuse('maxTokens: at least 1')
  for (const [name, value] of Object.entries({ temperature, topP })) {
    if (value === undefined) continue
    if (!(value >= 0 && value <= 1)) refuse(`${name}: must be 0 to 1`)
    if (is.claude(model) && refusesSampling.test(model)) refuse(`\`${name}\` is not supported with this model.`)
    if (more.thinking && more.thinking.type !== 'disabled') refuse(`\`${name}\` must be unset while thinking.`)
  }
  if (is.claude(model) && temperature !== undefined && topP !== undefined) {
    refuse('`temperature` and `top_p` cannot both be specified for this model.')
  }
  if (more.reasoningConfig?.maxReasoningEffort === 'high' && body.inferenceConfig) {
    refuse("`maxTokens` must be unset when reasoningConfig type is 'enabled' and maxReasoningEffort is 'high'.")
  }
  checkThinking(more.thinking, maxTokens, model)
  if (more.output_config?.format && refusesSchemas.test(model)) refuse('output_config.format: Extra inputs')
  const text = body.outputConfig?.textFormat
  if (text && (text.type !== 'json_schema' || typeof text.structure?.jsonSchema?.schema !== 'string')) {
    refuse('outputConfig.textFormat must hold a schema as text')
  }
  if (body.serviceTier && !words('default flex priority reserved').has(body.serviceTier.type)) refuse('serviceTier')
  for (const pair of Object.entries(body.requestMetadata ?? {}).flat()) {
    if (!/^[a-zA-Z0-9 ._:/=+$@-]{0,256}$/.test(pair)) refuse('requestMetadata must satisfy its pattern')
  }
}

function checkThinking(thinking, maxTokens, model) {
  if (thinking?.type !== 'enabled') return
  if (refusesSampling.test(model)) refuse('thinking.type: `enabled` is not supported with this model.')
  if (!(thinking.budget_tokens >= 1024)) refuse('thinking.budget_tokens: must be at least 1024')
  if (!(maxTokens > thinking.budget_tokens)) refuse('`max_tokens` must be greater than `thinking.budget_tokens`.')
}

/** At most four, each behind something, those of an hour before those of five minutes. */
function checkCachePoints(body, model) {
  const lists = [body.toolConfig?.tools, body.system, ...body.messages.map(({ content }) => content)].filter(Boolean)
  const points = lists.flat().flatMap(({ cachePoint }) => (cachePoint ? [cachePoint] : []))
  if (points.length === 0) return
  if (!is.claude(model) && !is.nova(model)) refuse('This model does not support prompt caching.')
  if (is.nova(model) && body.toolConfig?.tools.some(({ cachePoint }) => cachePoint)) refuse('No cachePoint in tools.')
  if (points.length > 4) refuse(`A maximum of 4 cache points is allowed, not ${points.length}.`)
  if (lists.some(([first]) => first?.cachePoint)) refuse('There is nothing available to cache.')
  if (points.some(({ type, ttl = '5m' }) => type !== 'default' || !['5m', '1h'].includes(ttl))) refuse('cachePoint')
  const firstShort = points.findIndex(({ ttl }) => ttl !== '1h')
  if (firstShort >= 0 && points.slice(firstShort).some(({ ttl }) => ttl === '1h')) {
    refuse('a ttl of 1h must not come after a ttl of 5m')
  }
}
