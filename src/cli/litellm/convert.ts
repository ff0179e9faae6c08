/** Converts a configuration of LiteLLM to files of ours. */
import { Catalogue, type Deployment, priceOf, Variables } from './deployments.ts'
import { type Section, upstreamOf } from './providers.ts'
import { type Line, Report } from './report.ts'

/** Results of an import. */
export interface Converted {
  readonly manifests: ReadonlyMap<string, Section>
  readonly models: readonly Section[]
  readonly virtualModels: readonly Section[]
  readonly lines: readonly Line[]
  /** Variables to set, with what they hold. */
  readonly variables: ReadonlyMap<string, string>
}

/** Ids of our models. `auto` is reserved. */
const ID = /^(?!auto$)[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

/** Parameters of a deployment that are fields of requests. */
const FIELDS = ['temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'frequency_penalty', 'presence_penalty']

const isSection = (value: unknown): value is Section =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const sectionOf = (value: unknown): Section => (isSection(value) ? value : {})
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The parts of one name of `model_list`. */
interface Named {
  readonly deployments: { readonly deployment: Deployment; readonly at: string }[]
}

/** Reads `input`, the parsed file. */
export async function convert(input: Section): Promise<Converted> {
  const report = new Report()
  const variables = new Variables()
  const catalogue = new Catalogue(variables)
  const names = await readModels(input, report)
  const virtual: Section[] = []
  const fallbacks = readFallbacks(input, names, report)
  /** The name of the deployments of `name` without its fallbacks, so that no circle comes about. */
  const poolOf = (name: string) => (fallbacks.has(name) ? `${name}.own` : name)
  const taken = new Set([...names.keys(), ...[...names.keys()].map(poolOf)])
  const freeId = (name: string) => {
    let next = 1
    while (taken.has(`${name}.${next}`)) next++
    taken.add(`${name}.${next}`)
    return `${name}.${next}`
  }
  for (const [name, named] of names) {
    const deployments = named.deployments.toSorted((a, b) => orderOf(a.deployment) - orderOf(b.deployment) || 0)
    const isOrdered = deployments.some(({ deployment }) => Number.isFinite(orderOf(deployment)))
    const weigh = (deployment: Deployment, at: string) =>
      isOrdered || deployments.length === 1 ? {} : weightOf(deployment, at, report)
    for (const { at } of deployments) report.carried(`${at}.litellm_params.order`, 'the order of the targets')
    const pool = poolOf(name)
    const defaults = deployments.map(({ deployment, at }) => defaultsOf(deployment, at, report))
    const isPlain = deployments.length === 1 && Object.keys(defaults[0]!).length === 0
    const use: Section[] = []
    for (const [index, { deployment, at }] of deployments.entries()) {
      const id = isPlain ? pool : freeId(name)
      await catalogue.add(id, deployment)
      const fields = defaults[index]!
      if (deployments.length > 1 && Object.keys(fields).length > 0) {
        const preset = freeId(name)
        virtual.push({ id: preset, use: [id], defaults: fields })
        use.push({ model: preset, ...weigh(deployment, at) })
      } else use.push({ model: id, ...weigh(deployment, at) })
    }
    if (!isPlain) {
      const single = deployments.length === 1
      virtual.push({
        id: pool,
        ...(single || isOrdered ? {} : { strategy: 'weight' }),
        use,
        ...(single && { defaults: defaults[0] }),
      })
    }
    const others = fallbacks.get(name)
    if (others) virtual.push({ id: name, use: [pool, ...others.map(poolOf)] })
  }
  readAliases(input, names, taken, virtual, report)
  return {
    manifests: new Map([...catalogue.manifests].map(([id, { head, models }]) => [id, { ...head, models }])),
    models: catalogue.models,
    virtualModels: virtual,
    lines: report.lines(input),
    variables: variables.toSet,
  }
}

async function readModels({ model_list, credential_list }: Section, report: Report): Promise<Map<string, Named>> {
  const names = new Map<string, Named>()
  const credentials = new Map(
    listOf(credential_list).map(one => [sectionOf(one).credential_name, sectionOf(sectionOf(one).credential_values)]),
  )
  for (const [index, entry] of listOf(model_list).entries()) {
    const at = `model_list[${index}]`
    const { model_name: name, litellm_params, model_info } = sectionOf(entry)
    const written = sectionOf(litellm_params)
    const params = { ...credentials.get(written.litellm_credential_name), ...written }
    const model = params.model
    if (typeof name !== 'string' || typeof model !== 'string') {
      report.lost(at, 'it lacks a model_name or a litellm_params.model')
      continue
    }
    if (name.includes('*') || model.includes('*')) {
      report.lost(at, 'name each model; or clients write provider/model with a manifest that has models: open')
      continue
    }
    if (!ID.test(name)) {
      report.lost(at, 'a name has letters, digits and . _ : - alone and is not auto; rename it')
      continue
    }
    const custom = typeof params.custom_llm_provider === 'string' ? params.custom_llm_provider : undefined
    const upstream = await upstreamOf(model, custom)
    if (!upstream) {
      report.lost(at, 'no packaged provider has this prefix; write a manifest (docs/extending.md)')
      continue
    }
    const deployment = { upstream, params, info: sectionOf(model_info) }
    noteDeployment(at, written, deployment, report)
    const found = names.get(name) ?? { deployments: [] }
    found.deployments.push({ deployment, at })
    names.set(name, found)
  }
  return names
}

/** Infinite for a deployment without an order, which comes last. */
const orderOf = ({ params }: Deployment): number => (typeof params.order === 'number' ? params.order : Infinity)

function noteDeployment(at: string, params: Section, deployment: Deployment, report: Report): void {
  report.carried(`${at}.model_name`)
  for (const key of ['model', 'api_base', 'base_url', 'custom_llm_provider'])
    report.carried(`${at}.litellm_params.${key}`)
  const { api_key: secret } = params
  if (typeof secret !== 'string') report.lost(`${at}.litellm_params.api_key`, 'a key is text; quote it')
  else if (secret.startsWith('os.environ/')) report.carried(`${at}.litellm_params.api_key`)
  else report.changed(`${at}.litellm_params.api_key`, 'a variable takes the place of the text')
  report.carried(`${at}.litellm_params.litellm_credential_name`, 'its key and address stand in the manifest')
  const isPriced = priceOf(deployment).pricing !== undefined
  for (const key of ['input_cost_per_token', 'output_cost_per_token']) {
    for (const part of ['litellm_params', 'model_info']) {
      if (isPriced) report.changed(`${at}.${part}.${key}`, 'a price of a million tokens')
      else report.lost(`${at}.${part}.${key}`, 'a price needs both costs of a token, as numbers')
    }
  }
  for (const key of ['max_input_tokens', 'max_output_tokens', 'mode', 'base_model'])
    report.carried(`${at}.model_info.${key}`)
  report.lost(`${at}.litellm_params.rpm`, 'write rpm at the credential in the manifest')
  report.lost(`${at}.litellm_params.tpm`, 'write tpm at the credential in the manifest')
  for (const key of ['timeout', 'stream_timeout'])
    report.lost(`${at}.litellm_params.${key}`, 'set timeouts in the manifest')
  report.lost(`${at}.litellm_params.api_version`, 'the v1 address of Azure needs none')
}

function defaultsOf({ params }: Deployment, at: string, report: Report): Section {
  const given = FIELDS.filter(field => typeof params[field] === 'number')
  for (const field of given) report.carried(`${at}.litellm_params.${field}`, 'defaults of the virtual model')
  return Object.fromEntries(given.map(field => [field, params[field]]))
}

const WEIGHT_LIMIT = 1_000_000
/** Tokens per minute that weigh as much as a request per minute. */
const TPM_OF_RPM = 1000

/** LiteLLM draws by `weight`, else by `rpm`, else by `tpm`. */
function weightOf({ params }: Deployment, at: string, report: Report): Section {
  const key = ['weight', 'rpm', 'tpm'].find(one => Number(params[one]) > 0)
  if (!key) return {}
  if (key === 'weight') report.carried(`${at}.litellm_params.weight`)
  else report.changed(`${at}.litellm_params.${key}`, 'the weight of the deployment, no limit')
  return { weight: Math.min(WEIGHT_LIMIT, Number(params[key]) / (key === 'tpm' ? TPM_OF_RPM : 1)) }
}

const LACKS_NAMES = 'without the names that model_list lacks'

/** Names to try after a name, by it. */
function readFallbacks(
  input: Section,
  names: ReadonlyMap<string, Named>,
  report: Report,
): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  const addTo = (name: string, more: readonly string[]) =>
    found.set(name, [...new Set([...(found.get(name) ?? []), ...more])])
  for (const part of ['litellm_settings', 'router_settings']) {
    const section = sectionOf(input[part])
    for (const kind of ['fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks']) {
      for (const [index, entry] of listOf(section[kind]).entries()) {
        for (const [name, others] of Object.entries(sectionOf(entry))) {
          const key = `${part}.${kind}[${index}].${name}`
          const known = listOf(others).filter(
            (one): one is string => typeof one === 'string' && names.has(one) && one !== name,
          )
          if (!names.has(name) || known.length === 0) {
            report.lost(key, 'model_list has no such name')
            continue
          }
          addTo(name, known)
          if (known.length < listOf(others).length) report.changed(key, LACKS_NAMES)
          else if (kind === 'fallbacks') report.carried(key, 'targets of the virtual model, in order')
          else report.changed(key, 'targets of the virtual model after any failure that allows another one')
        }
      }
    }
    const given = listOf(section.default_fallbacks)
    const everywhere = given.filter((one): one is string => names.has(String(one)))
    const key = `${part}.default_fallbacks`
    if (everywhere.length === 0) report.lost(key, 'model_list has no such name')
    else if (everywhere.length < given.length) report.changed(key, LACKS_NAMES)
    else report.carried(key, 'last targets of each virtual model')
    for (const name of names.keys()) {
      const more = everywhere.filter(one => one !== name)
      if (more.length > 0) addTo(name, more)
    }
  }
  return found
}

function readAliases(
  input: Section,
  names: ReadonlyMap<string, Named>,
  taken: Set<string>,
  virtual: Section[],
  report: Report,
): void {
  for (const part of ['router_settings', 'litellm_settings']) {
    for (const [alias, target] of Object.entries(sectionOf(sectionOf(input[part]).model_group_alias))) {
      const name = String(isSection(target) ? target.model : target)
      const key = `${part}.model_group_alias.${alias}`
      if (!ID.test(alias) || taken.has(alias) || !names.has(name))
        report.lost(key, 'the name is taken or wrong, or its model is missing')
      else {
        taken.add(alias)
        virtual.push({ id: alias, use: [name] })
        report.carried(key, 'a virtual model')
        report.lost(`${key}.hidden`, 'GET /v1/models lists it')
      }
    }
  }
}
