/** Parameters of a deployment beside its model, address and credential. */
import { isSecretName, redactText } from '../../secrets/redact.ts'
import { type Deployment, isCapability, modeOf, PRICES, priceOf } from './models.ts'
import type { Report } from './report.ts'
import { isSection, listOf, type Section, sectionOf, textOf } from './sections.ts'
import type { Variables } from './variables.ts'

/** Parameters that are fields of requests, by mode. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  chat: [
    ...['temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'frequency_penalty', 'presence_penalty'],
    ...['n', 'user', 'reasoning_effort', 'response_format', 'verbosity'],
  ],
  embedding: ['dimensions', 'encoding_format', 'user'],
  image_generation: ['size', 'quality', 'n'],
  audio_speech: ['voice', 'response_format', 'speed'],
}
/** Parameters that every chat completions API has, but not all wires. */
export const SAMPLED: readonly string[] = ['seed', 'stop', 'top_k', 'logit_bias', 'min_p', 'repetition_penalty']

/** Fields of requests that a deployment sets where they are left out. */
export function defaultsOf({ params, upstream, info, at }: Deployment, report: Report): Section {
  const fields = FIELDS[modeOf({ upstream, info })] ?? []
  const given = fields.filter(
    field => params[field] !== undefined && isPlain(field, params[field]) && !refers(params[field]),
  )
  const own = report.below(`${at}.litellm_params`)
  own.carried(given, 'defaults of a virtual model')
  const reasoning = fields.includes('reasoning_effort') && !given.includes('reasoning_effort') && reasoningOf(params)
  if (reasoning) own.changed('thinking', 'reasoning in defaults of a virtual model')
  const plain = given.map(field => [field, params[field] === 'disable' ? 'none' : params[field]] as const)
  return { ...Object.fromEntries(plain), ...reasoning }
}

/** `thinking` of Anthropic in the words of our chat requests; undefined for anything else. */
function reasoningOf({ thinking }: Section): Section | undefined {
  const { type, budget_tokens: budget } = sectionOf(thinking)
  if (type === 'disabled') return { reasoning_effort: 'none' }
  if (type !== 'enabled' && type !== 'adaptive') return undefined
  return Number.isSafeInteger(budget) && Number(budget) > 0
    ? { reasoning: { max_tokens: budget } }
    : { reasoning_effort: 'high' }
}

const NUMBERS = new Set(['temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'speed'])
const COUNTS = new Set(['max_tokens', 'max_completion_tokens', 'n', 'dimensions'])
/** Words that fields of our requests take; `disable` is LiteLLM's word for no effort. */
const WORDS: Readonly<Record<string, readonly unknown[]>> = {
  reasoning_effort: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'disable'],
  verbosity: ['low', 'medium', 'high'],
  encoding_format: ['float', 'base64'],
}
const isPlain = (field: string, value: unknown): boolean => {
  if (NUMBERS.has(field)) return typeof value === 'number'
  if (Object.hasOwn(WORDS, field)) return WORDS[field]!.includes(value)
  if (COUNTS.has(field)) return Number.isSafeInteger(value) && Number(value) > 0
  return field === 'response_format' ? isSection(value) || textOf(value) !== undefined : textOf(value) !== undefined
}

const ORGANIZATION = 'OpenAI-Organization'

/** Whether a variable stands in a value. */
const refers = (value: unknown): boolean => /os\.environ\/|\$\{/.test(JSON.stringify(value))

/** Whether 20 letters and digits stand together. */
const isRandom = (text: string): boolean =>
  (text.match(/[a-z\d]{20,}/gi) ?? []).some(run => /\d/.test(run) && /[a-z]/i.test(run))

const isSecret = (name: string, value: unknown): boolean =>
  isSecretName(name) ||
  name === ORGANIZATION ||
  /auth|cookie|token|key/i.test(name) ||
  (typeof value === 'string' &&
    (redactText(value) !== value || /^os\.environ\/|\$\{/.test(value) || isRandom(value))) ||
  (isSection(value) && Object.entries(value).some(([key, one]) => isSecret(key, one))) ||
  (Array.isArray(value) && value.some(one => isSecret('', one)))

/** Members of a manifest that come from further parameters. `head`: the other ones. */
export function settingsOf(params: Section, head: Section, id: string, variables: Variables): Section {
  const headers: Record<string, string> = { ...(sectionOf(head.headers) as Record<string, string>) }
  for (const [name, value] of headersOf(params)) {
    headers[name] = isSecret(name, value) ? variables.reference(value, `${id}_${name}`, ':-not-set') : value
  }
  const quirks = sectionOf(head.quirks)
  const fields = { ...sectionOf(quirks.default), ...bodyOf(params, head) }
  const timeouts = timeoutsOf(params)
  const drop = [...listOf(quirks.drop), ...droppedOf(params)]
  return {
    ...(Object.keys(headers).length > 0 && { headers }),
    ...((Object.keys(fields).length > 0 || drop.length > 0) && {
      quirks: {
        ...quirks,
        ...(drop.length > 0 && { drop }),
        ...(Object.keys(fields).length > 0 && { default: fields }),
      },
    }),
    ...(Object.keys(timeouts).length > 0 && { timeouts: { ...sectionOf(head.timeouts), ...timeouts } }),
  }
}

/** Fields to leave out, at their places: `tools.*.function.strict` for `tools[*].function.strict`. */
const droppedOf = ({ additional_drop_params: all }: Section): string[] =>
  listOf(all).flatMap(one => /^[^[\\]+$/.exec(String(one).replaceAll('[*]', '.*')) ?? [])

function headersOf(params: Section): (readonly [string, string])[] {
  const written = {
    ...sectionOf(params.default_headers),
    ...sectionOf(params.headers),
    ...sectionOf(params.extra_headers),
  }
  const organization = textOf(params.organization)
  const all = { ...written, ...(organization !== undefined && { [ORGANIZATION]: organization }) }
  return Object.entries(all).flatMap(([name, value]) =>
    /^[A-Za-z0-9-]{1,64}$/.test(name) && /^[ -~]+$/.test(textOf(value) ?? '') ? [[name, String(value)] as const] : [],
  )
}

const isChatWire = (head: Section) => sectionOf(head.wires).chat === 'openai.chat'

function bodyOf(params: Section, head: Section): Section {
  const body = Object.fromEntries(
    Object.entries(sectionOf(params.extra_body)).filter(([key, value]) => !isSecret(key, value)),
  )
  const sampled = SAMPLED.filter(key => params[key] !== undefined && !refers(params[key]))
  if (isChatWire(head)) return { ...Object.fromEntries(sampled.map(key => [key, params[key]])), ...body }
  const stops = [params.stop].flat().filter(one => textOf(one) !== undefined && !refers(one))
  const isClaude = String(sectionOf(head.wires).chat).startsWith('anthropic.')
  return isClaude && stops.length > 0 ? { stop_sequences: stops, ...body } : body
}

const TOTAL_S = 900

const isTimeout = (value: unknown): boolean => Number(value) >= 1 && Number(value) <= 3600

/** LiteLLM counts seconds to the beginning of an answer. Streams and whole answers have one time here: the longer one. */
function timeoutsOf({ timeout, stream_timeout }: Section): Section {
  const longest = Math.round(Math.max(...[timeout, stream_timeout].filter(isTimeout).map(Number)))
  if (!Number.isFinite(longest)) return {}
  return { first_event: `${longest}s`, ...(longest > TOTAL_S && { total: `${longest}s` }) }
}

/** Says what becomes of the keys of a deployment. `written`: without what a credential of the list adds. */
export function noteDeployment(written: Section, deployment: Deployment, head: Section, report: Report): void {
  const { at, params, info } = deployment
  const own = report.below(`${at}.litellm_params`)
  const ofModel = report.below(`${at}.model_info`)
  report.carried(`${at}.model_name`)
  own.carried(['base_model', 'model', 'api_base', 'base_url', 'custom_llm_provider', 'aws_bedrock_runtime_endpoint'])
  const ofCloud = Object.keys(written).filter(one => /^(?:aws|vertex)_/.test(one))
  own.carried(ofCloud, 'the address or the credential of the manifest')
  own.lost(
    ['aws_role_name', 'aws_session_name', 'aws_web_identity_token', 'aws_external_id', 'aws_sts_endpoint'],
    'write the role in a profile and name it with profile; see docs/providers.md',
  )
  const ofAmazon = ['access_key_id', 'secret_access_key', 'session_token', 'bearer_token_bedrock']
  for (const name of ['api_key', 'azure_ad_token', ...ofAmazon.map(one => `aws_${one}`)])
    noteSecret(name, params[name], own)
  if (written.vertex_credentials !== undefined)
    own.changed('vertex_credentials', 'a variable with the JSON of the key file, not its path')
  own.carried('litellm_credential_name', 'its key and address stand in the manifest')
  own.carried('organization', 'a header of the manifest')
  own.lost(
    ['tenant_id', 'client_id', 'client_secret', 'azure_username', 'azure_password', 'azure_scope'],
    'tokens of Entra ID are not fetched; set a key, or a token as auth of the manifest',
  )
  const prices = sectionOf(priceOf(deployment).pricing)
  for (const [name, price] of Object.entries(PRICES)) {
    for (const part of [own, ofModel]) {
      if (price[0] in prices) part.changed(name, 'pricing of the offer')
      else part.lost(name, 'write pricing of the offer: this cost alone is no price of its mode')
    }
  }
  own.lost(FIELDS[modeOf(deployment)] ?? [], 'write its value in defaults of a virtual model')
  ofModel.carried(['max_input_tokens', 'max_output_tokens', 'max_tokens', 'mode', 'base_model'])
  if (deployment.upstream.base !== undefined) own.carried('model_id', 'the id of the offer')
  own.changed('cache_control_injection_points', 'cache: auto of the offer, for providers that need marks')
  ofModel.carried(Object.keys(info).filter(isCapability), 'supports of the offer')
  noteSettings(params, head, own)
}

const seconds = (value: unknown): number => (isTimeout(value) ? Number(value) : 0)

function noteSecret(name: string, value: unknown, report: Report): void {
  if (typeof value !== 'string') report.lost(name, 'a key is text; quote it')
  else if (value.startsWith('os.environ/')) report.carried(name)
  else report.changed(name, 'a variable takes the place of the text')
}

/** `report`: of the parameters. */
function noteSettings(params: Section, head: Section, report: Report): void {
  for (const name of ['extra_headers', 'headers', 'default_headers']) {
    report.carried(name, 'headers of the manifest')
    const sent = headersOf({ [name]: params[name] }).map(([header]) => header)
    for (const header of Object.keys(sectionOf(params[name]))) {
      if (!sent.includes(header)) report.lost(`${name}.${header}`, 'it is no header')
    }
  }
  const body = bodyOf(params, head)
  for (const name of Object.keys(sectionOf(params.extra_body))) {
    if (name in body)
      report.changed(`extra_body.${name}`, 'quirks.default of the manifest, where a request leaves it out')
    else report.lost(`extra_body.${name}`, 'it looks like a secret; write it in quirks.default of the manifest')
  }
  for (const name of SAMPLED) {
    const isSent = name in body || (name === 'stop' && 'stop_sequences' in body)
    if (isSent) report.changed(name, 'quirks.default of the manifest')
    else report.lost(name, 'the wire of this provider has no such field; clients may set it')
  }
  const { additional_drop_params: toDrop } = params
  if (Array.isArray(toDrop) && droppedOf(params).length === toDrop.length)
    report.carried('additional_drop_params', 'quirks.drop of the manifest, and the parameters of the offer')
  else report.lost('additional_drop_params', 'quirks.drop has fields and lists, such as tools.*.function.strict')
  const [longer, other] = ['timeout', 'stream_timeout'].sort((a, b) => seconds(params[b]) - seconds(params[a]))
  const isSet = isTimeout(params[longer!])
  if (isSet) report.changed(longer!, 'timeouts.first_event of the manifest')
  else report.lost(longer!, 'set timeouts in the manifest')
  report.lost(other!, isSet ? `timeouts.first_event holds for both: ${longer}` : 'set timeouts in the manifest')
  for (const name of ['rpm', 'tpm']) report.lost(name, `write ${name} at the credential in the manifest`)
  report.lost('api_version', 'the v1 address of Azure needs none')
  report.lost(['max_retries', 'num_retries'], 'set attempts of the filter route')
  report.lost('tags', 'write targets with when: { tags }; see docs/virtual-models.md')
  report.lost(
    ['max_budget', 'budget_duration'],
    'no limit counts what one model costs; limit keys, members or projects',
  )
}
