/** Converts a configuration of LiteLLM to files of ours. */
import { readAliases, readFallbacks } from './fallbacks.ts'
import { Catalogue, contentsOf } from './manifests.ts'
import { type Deployment, isServed, unpricedNote } from './models.ts'
import { NAME, type Names, Pools, readStrategy } from './names.ts'
import { noteDeployment } from './params.ts'
import { headOf, upstreamOf } from './providers.ts'
import { type Line, Report } from './report.ts'
import { isSection, listOf, PLAIN, plainName, type Section, sectionOf, textOf } from './sections.ts'
import { Variables, variablesIn } from './variables.ts'

/** Members of `gateway.yaml`; `attempts` is that of the filter route. */
interface GatewaySettings {
  readonly attempts?: number
  readonly end_users?: Section
}

/** Results of an import. */
export interface Converted {
  readonly manifests: ReadonlyMap<string, Section>
  readonly models: readonly Section[]
  readonly virtualModels: readonly Section[]
  readonly lines: readonly Line[]
  readonly settings?: GatewaySettings
  /** Variables to set, with what they hold. */
  readonly variables: ReadonlyMap<string, string>
}

/** Reads `input`, the parsed file. `isWhole`: the files that it includes are part of it. */
export async function convert(input: Section, isWhole = false): Promise<Converted> {
  const report = new Report()
  if (isWhole) report.carried('include', 'the files are part of this import')
  const names = await readModels(input, report)
  const keyless = [...names.values()].flat().filter(({ params }) => params.api_key === undefined)
  const variables = new Variables(variablesIn([input, keyless.map(({ upstream }) => upstream.manifest.auth)]))
  const fallbacks = readFallbacks(input, names, report)
  const catalogue = new Catalogue(variables, new Set([...names.keys(), ...fallbacks.keys()]))
  const pools = new Pools({ names, fallbacks, ...readStrategy(input, report) }, catalogue, report)
  const virtual = await pools.virtualModels()
  virtual.push(...readAliases(input, pools, report))
  const settings = readSettings(input, report)
  for (const name of Object.keys(sectionOf(input.environment_variables)))
    if (variables.toSet.has(name)) variables.toSet.set(name, 'the text in environment_variables of the imported file')
  const lines = report.lines(input)
  return { ...contentsOf(catalogue), virtualModels: virtual, settings, lines, variables: variables.toSet }
}

/** Parameters that deployments have unless they say otherwise. */
function commonParams({ router_settings, litellm_settings }: Section, report: Report): Section {
  const { default_litellm_params: common } = sectionOf(router_settings)
  const { vertex_project, vertex_location } = sectionOf(litellm_settings)
  report.changed('router_settings.default_litellm_params', 'parameters of each deployment, which has advice for them')
  const note = 'the address of the manifests of Vertex AI'
  report.carried(['litellm_settings.vertex_project', 'litellm_settings.vertex_location'], note)
  return {
    ...(vertex_project !== undefined && { vertex_project }),
    ...(vertex_location !== undefined && { vertex_location }),
    ...sectionOf(common),
  }
}

async function readModels(input: Section, report: Report): Promise<Names> {
  const { model_list, credential_list } = input
  const common = commonParams(input, report)
  const names = new Map<string, Deployment[]>()
  // Maps a name without marks to the one that keeps it: one that was written so, else the first.
  const spelled = new Map<unknown, unknown>()
  for (const one of listOf(model_list)) {
    const { model_name: name } = sectionOf(one)
    if (typeof name !== 'string') continue
    const plain = plainName(name)
    if (!spelled.has(plain) || plain === name) spelled.set(plain, name)
  }
  const credentials = new Map(
    listOf(credential_list).map((one, index) => {
      const { credential_name, credential_values } = sectionOf(one)
      return [credential_name, { values: sectionOf(credential_values), at: `credential_list[${index}]` }]
    }),
  )
  for (const { at } of credentials.values()) report.lost(at, 'no model names it')
  for (const [index, entry] of listOf(model_list).entries()) {
    const at = `model_list[${index}]`
    const { model_name, litellm_params, model_info } = sectionOf(entry)
    const name = typeof model_name === 'string' ? plainName(model_name) : model_name
    const isOther = name !== model_name && (spelled.get(name) ?? model_name) !== model_name
    const written = sectionOf(litellm_params)
    const credential = credentials.get(written.litellm_credential_name)
    if (credential) report.carried(credential.at, 'stands in the manifests of the models that name it')
    const params = resolved({ ...common, ...credential?.values, ...written })
    if (typeof name !== 'string' || typeof params.model !== 'string') {
      report.lost(at, 'model_name and litellm_params.model are texts; add or quote them')
      continue
    }
    const issue = isOther
      ? `${PLAIN}, it has the name of another; rename it`
      : issueOf(name, params.model, params.api_base ?? params.base_url)
    if (issue !== undefined) {
      report.lost(at, issue)
      continue
    }
    const info = resolved({ base_model: params.base_model ?? null, ...sectionOf(model_info) })
    const isAny = params.model === '*'
    const upstream = await upstreamOf(isAny ? { ...params, model: 'openai/*' } : params, info.mode)
    if (!upstream) {
      report.lost(at, 'no packaged provider serves it; write a manifest (docs/extending.md)')
      continue
    }
    const deployment = { upstream, params, info, at }
    if (!isServed(deployment)) {
      const isPattern = upstream.model.includes('*')
      report.lost(at, `the wires of this provider do not serve this mode; name ${isPattern ? 'each model' : 'another'}`)
      continue
    }
    noteDeployment(written, deployment, headOf(upstream, params), report)
    if (!credential)
      report.lost(`${at}.litellm_params.litellm_credential_name`, 'credential_list has no such name; set the key')
    if (name !== model_name) report.changed(`${at}.model_name`, `clients call it ${PLAIN}`)
    const notes = [
      params.model.includes('os.environ/') && 'its variable holds the model without its provider',
      upstream.isAssumed && 'called by the API of OpenAI, which it must have',
      isAny && 'names without a provider go to OpenAI',
      unpricedNote(deployment),
    ].filter(note => typeof note === 'string')
    if (notes.length > 0) report.changed(`${at}.litellm_params.model`, notes.join('; '))
    names.set(name, [...(names.get(name) ?? []), deployment])
  }
  return names
}

/** Parameters without those that are null. `${NAME}` becomes `os.environ/NAME`; the region of a model is one of them. */
function resolved(params: Section): Section {
  const given = Object.entries(params).filter(([, value]) => value !== null)
  const named = Object.fromEntries(given.map(([key, value]) => [key, filled(value)]))
  const { model, model_id } = named
  if (typeof model !== 'string') return named
  const region = /(?:^|\/)([a-z]{2}(?:-gov)?-[a-z]+-\d)\/|arn:[\w-]+:bedrock:([\w-]+):/.exec(
    `${model_id ?? ''} ${model}`,
  )
  return {
    ...(region && { aws_region_name: region[1] ?? region[2] }),
    ...named,
    model: model.replace(/(?<=^[a-z_]+\/)\$\{(\w+)\}$/, 'os.environ/$1'),
  }
}

const filled = (value: unknown): unknown =>
  isSection(value)
    ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, filled(one)]))
    : typeof value === 'string'
      ? value.replace(/^\$\{([A-Za-z_]\w*)(?::-[^}]*)?\}$/, 'os.environ/$1')
      : value

function issueOf(name: string, model: string, base: unknown): string | undefined {
  if (!NAME.test(name)) return 'a name has at most 128 printable ASCII characters, no ${, and is not auto; rename it'
  if (model.endsWith('/')) return 'its model has a provider and no name; write the name'
  if (model.includes('${')) return 'a model has no ${ in its name; write the name, or os.environ/ and one variable'
  if (model.startsWith('os.environ/') && base === undefined) return 'its provider is not known; write the model out'
  if (/:(?:floor|nitro)$/.test(name)) return 'a name that ends in :floor or :nitro chooses a strategy here; rename it'
  if (name.split('*').length > 2 || model.split('*').length > 2) return 'a name has one * at most; name each model'
  if (model.includes('*') && !name.includes('*')) return 'only a model_name with * can stand for many models'
  return undefined
}

const MAX_ATTEMPTS = 10

/** Reads settings that have a place in `gateway.yaml`. */
function readSettings(input: Section, report: Report): GatewaySettings {
  const endUsers = endUsersOf(input, report)
  const attempts = attemptsOf(input, report)
  return {
    ...(attempts !== undefined && { attempts }),
    ...(Object.keys(endUsers).length > 0 && { end_users: endUsers }),
  }
}

/** Retries of the router count before the other ones. */
function attemptsOf(input: Section, report: Report): number | undefined {
  let attempts: number | undefined
  for (const part of ['router_settings', 'litellm_settings']) {
    const { num_retries: retries } = sectionOf(input[part])
    if (attempts !== undefined) report.lost(`${part}.num_retries`, 'router_settings.num_retries counts before it')
    else if (Number.isSafeInteger(retries) && Number(retries) >= 0) {
      attempts = Math.min(Number(retries) + 1, MAX_ATTEMPTS)
      report.changed(`${part}.num_retries`, `attempts of the filter route: one more, at most ${MAX_ATTEMPTS}`)
    }
  }
  return attempts
}

function endUsersOf({ general_settings, litellm_settings }: Section, report: Report): Section {
  const { user_header_name, user_header_mappings } = sectionOf(general_settings)
  const { max_end_user_budget: budget } = sectionOf(litellm_settings)
  const mapped = listOf(user_header_mappings).map(sectionOf)
  const customer = mapped.findIndex(({ litellm_user_role: role }) => role === 'customer')
  const named = textOf(user_header_name) ?? textOf(mapped[customer]?.header_name)
  const header = named !== undefined && /^[A-Za-z0-9-]{1,64}$/.test(named) ? named.toLowerCase() : undefined
  const isLimit = typeof budget === 'number' && /^\d{1,8}(?:\.\d{1,9})?$/.test(String(budget)) && budget > 0
  const keys = ['general_settings.user_header_name', `general_settings.user_header_mappings[${customer}]`]
  if (header !== undefined) report.carried(keys, 'end_users.header of gateway.yaml')
  if (isLimit) report.changed('litellm_settings.max_end_user_budget', 'end_users.default_limit, of all time')
  return {
    ...(header !== undefined && { header }),
    ...(isLimit && { default_limit: { amount: String(budget), period: 'total' } }),
  }
}
