/** Converts a config of Portkey, its JSON of strategies and targets, to files of ours. */
import type { Converted } from './litellm/convert.ts'
import { Catalogue, contentsOf } from './litellm/manifests.ts'
import { type Deployment, isServed, unpricedNote } from './litellm/models.ts'
import { defaultsOf } from './litellm/params.ts'
import { upstreamOf } from './litellm/providers.ts'
import { Report } from './litellm/report.ts'
import { isSection, listOf, type Section, sectionOf, textOf } from './litellm/sections.ts'
import { Variables } from './litellm/variables.ts'

/** Prefixes of LiteLLM by provider, where the names differ. */
const PREFIXES: Readonly<Record<string, string>> = {
  'azure-openai': 'azure',
  'azure-ai': 'azure_ai',
  'open-ai': 'openai',
  'vertex-ai': 'vertex_ai',
  vertex: 'vertex_ai',
  google: 'gemini',
  'together-ai': 'together_ai',
  'mistral-ai': 'mistral',
  'fireworks-ai': 'fireworks_ai',
  'perplexity-ai': 'perplexity',
  'x-ai': 'xai',
  jina: 'jina_ai',
}
/** Providers that the name of a stored credential may hold, the longest name first. */
const KNOWN = [
  ...Object.keys(PREFIXES),
  ...['openai', 'anthropic', 'bedrock', 'azure', 'cohere', 'groq'],
  ...['openrouter', 'deepseek', 'ollama', 'cerebras', 'mistral', 'gemini'],
].toSorted((one, other) => other.length - one.length)

const GUARDS = ['input_guardrails', 'output_guardrails', 'before_request_hooks', 'after_request_hooks']
/** Advice for what is not carried, wherever it stands. */
const LOST: Readonly<Record<string, string>> = {
  cache: 'set cache of the virtual model; see docs/virtual-models.md#limits-and-cache',
  retry: 'set attempts of the filter route',
  forward_headers: 'providers get headers of the manifest, and none of a client',
  metadata: 'clients send tags; see docs/end-users-and-tags.md',
  api_version: 'the v1 address of Azure needs none',
  override_params: 'write it in overrides of the virtual model, as the API takes it',
}

/** A target that is carried, by its name in `use`. */
interface Used {
  readonly target: string
  readonly written: Section
}

/** A target with what it stands for in files of ours. */
interface Leaf {
  readonly target: string
  readonly overrides: Section
}

/** Reads `input`, the parsed config; `name` becomes the model that clients call. */
export async function convertPortkey(input: Section, name: string): Promise<Converted> {
  const converter = new PortkeyConverter(name)
  const config = plain(input)
  await converter.convert(config)
  const { catalogue, report, variables, virtual } = converter
  return { ...contentsOf(catalogue), virtualModels: virtual, lines: report.lines(config), variables: variables.toSet }
}

class PortkeyConverter {
  readonly report = new Report()
  readonly variables = new Variables()
  readonly catalogue: Catalogue
  readonly virtual: Section[] = []
  readonly #name: string
  #next = 1

  constructor(name: string) {
    this.#name = name
    this.catalogue = new Catalogue(this.variables, new Set([name, `${name}/*`]))
  }

  /** Adds the virtual model of the whole config: a pattern where a target takes any model. */
  async convert(input: Section): Promise<void> {
    advise(this.report)
    const made = await this.#group(input, this.report, true)
    if (made.use.length === 0) return
    const isPattern = made.use.some(one => String(typeof one === 'string' ? one : sectionOf(one).model).includes('*'))
    this.virtual.push({ id: isPattern ? `${this.#name}/*` : this.#name, ...made })
  }

  /** The targets of a config, or of a target that has a strategy of its own. */
  async #group(
    config: Section,
    report: Report,
    isRoot: boolean,
  ): Promise<Section & { readonly use: readonly unknown[] }> {
    const strategy = sectionOf(config.strategy)
    const mode = textOf(strategy.mode) ?? 'single'
    const targets = Array.isArray(config.targets) ? config.targets.map(sectionOf) : [config]
    const hasList = Array.isArray(config.targets)
    report.carried('strategy.mode', 'the strategy of a virtual model')
    report.changed('strategy.on_status_codes', 'a further target is tried after any failure that allows it')
    const isSticky = sectionOf(strategy.sticky_session).enabled === true
    report.changed('strategy.sticky_session', 'sticky: session; docs/routing.md says what names a session')
    const used: Used[] = []
    for (const [index, written] of targets.entries()) {
      const own = hasList ? report.below(`targets[${index}]`) : report
      const target = await this.#target(inherited(config, written), own, isRoot)
      if (target !== undefined) used.push({ target, written })
    }
    const sticky = isSticky ? { sticky: 'session' } : {}
    if (mode === 'loadbalance') return { strategy: 'weight', ...sticky, use: weighted(used, targets, report) }
    if (mode === 'conditional') return { use: this.#conditional(strategy, used, report) }
    const first = mode === 'single' ? used.slice(0, 1) : used
    return { use: first.map(({ target }) => target) }
  }

  /** The name of a target in `use`; undefined for one that is not carried. */
  async #target(written: Section, report: Report, isRoot: boolean): Promise<string | undefined> {
    if (report.at) advise(report)
    report.carried(['name', 'weight'])
    if (Array.isArray(written.targets)) {
      const group = await this.#group(written, report, false)
      if (group.use.length === 0) return undefined
      const id = this.#inner()
      this.virtual.push({ id, hidden: true, ...group })
      return id
    }
    const leaf = await this.#leaf(written, report, isRoot)
    if (!leaf) return undefined
    if (Object.keys(leaf.overrides).length === 0) return leaf.target
    if (leaf.target.includes('*')) {
      report.lost('override_params', 'name the model in override_params too, or set the fields in the client')
      return leaf.target
    }
    const id = this.#inner()
    this.virtual.push({ id, hidden: true, use: [leaf.target], overrides: leaf.overrides })
    return id
  }

  async #leaf(written: Section, report: Report, isRoot: boolean): Promise<Leaf | undefined> {
    const { provider, model, stored } = namesIn(written)
    if (provider === undefined || (model === undefined && !isRoot)) {
      const why = provider === undefined ? 'name its provider' : 'name its model in override_params'
      return lose(written, report, `${why}; a stored credential does not say it`)
    }
    const params = paramsOf(written, provider, model ?? '*')
    const upstream = await upstreamOf(params, undefined)
    const deployment: Deployment | undefined = upstream && { upstream, params, info: {}, at: report.at || 'config' }
    if (!deployment || !isServed(deployment)) {
      return lose(written, report, 'no packaged provider has this name; write a manifest (docs/extending.md)')
    }
    const own = variableOf(stored ?? provider)
    const isStored = params.api_key === undefined && stored !== undefined
    if (isStored) Object.assign(params, { api_key: `os.environ/${own}` })
    const overrides = defaultsOf({ ...deployment, params: sectionOf(written.override_params), at: '' }, new Report())
    this.#carried(written, report.at, Object.keys(overrides), unpricedNote(deployment))
    const target =
      model === undefined
        ? await this.catalogue.addOpen(deployment)
        : await this.catalogue.add(deployment.upstream.model, deployment, true)
    if (isStored) this.variables.toSet.set(own, 'the credential that is stored at Portkey')
    return { target, overrides }
  }

  /** Reports what becomes of the fields of a target, which may stand around it. `overrides`: the names of those carried. */
  #carried(written: Section, at: string, overrides: readonly string[], unpriced: string | undefined): void {
    const ofModel = textOf(sectionOf(written.override_params).model) ? 'override_params.model' : 'provider'
    for (const place of around(at)) {
      const report = this.report.below(place)
      report.carried(['provider', 'virtual_key', 'custom_host'], 'a manifest')
      report.carried(fieldsOfManifest(written), 'the manifest')
      report.changed('api_key', 'a variable takes the place of the text')
      report.changed('request_timeout', 'timeouts.first_event of the manifest')
      report.carried('override_params.model', 'the target')
      report.below('override_params').carried(overrides, 'overrides of a virtual model')
      if (unpriced) report.changed(ofModel, unpriced)
    }
  }

  /** Conditions on metadata become conditions on tags. */
  #conditional(strategy: Section, used: readonly Used[], report: Report) {
    const targetOf = (name: unknown) => used.find(({ written }) => written.name === name)?.target
    const use: unknown[] = []
    for (const [index, condition] of listOf(strategy.conditions).entries()) {
      const { query, then } = sectionOf(condition)
      const [tags, target] = [tagsOf(sectionOf(query)), targetOf(then)]
      const at = `strategy.conditions[${index}]`
      if (tags && target !== undefined) {
        use.push({ model: target, when: { tags } })
        report.changed(at, 'a condition on tags; clients send x-gateway-tags or metadata')
      } else report.lost(at, 'only $eq and $in of metadata are conditions; see docs/rules.md for those on models')
    }
    const fallback = targetOf(strategy.default)
    if (fallback !== undefined) use.push(fallback)
    report.carried('strategy.default', 'the last target')
    return use
  }

  #inner(): string {
    return `${this.#name}.${this.#next++}`
  }
}

/** A stored credential, and the model that may stand behind it. */
const SLUG = /^@([^/]+)(?:\/(.+))?$/
const OF_TARGET = 'provider virtual_key api_key custom_host request_timeout override_params passthrough'.split(' ')
const OF_MANIFEST = /^(?:aws|vertex|azure)_|^resource_name$|^deployment_id$/

/** Says what is not carried, wherever it stands. */
function advise(report: Report): void {
  for (const [name, note] of Object.entries(LOST)) report.lost(name, note)
  report.lost(GUARDS, 'write a filter; see docs/extending.md')
}

/** Reports that nothing of a target is carried. */
function lose(target: Section, report: Report, why: string): undefined {
  report.lost([...OF_TARGET, ...fieldsOfManifest(target)], why)
}

const fieldsOfManifest = (target: Section): string[] => Object.keys(target).filter(name => OF_MANIFEST.test(name))

/** The provider and the model of a target, and its stored credential, as far as it says them. */
function namesIn(target: Section) {
  const provider = textOf(target.provider) ?? ''
  const model = textOf(sectionOf(target.override_params).model)
  const [, ofModel, bare] = SLUG.exec(model ?? '') ?? []
  const [, ofProvider, whole] = SLUG.exec(provider) ?? (/-[0-9a-f]{4,}$/i.test(provider) ? ['', provider] : [])
  const stored = ofModel ?? ofProvider ?? textOf(target.virtual_key)
  const isNamed = ofModel === undefined && ofProvider === undefined && provider !== ''
  return {
    provider: isNamed ? provider.toLowerCase() : providerOf(stored),
    model: bare ?? model ?? whole ?? deploymentOf(target),
    stored,
  }
}

/** A target, and the places around it whose settings it has: `targets[1].targets[0]`, `targets[1]`, ``. */
const around = (at: string): string[] => (at ? [at, ...around(at.replace(/\.?targets\[\d+\]$/, ''))] : [''])

/** A target has what stands around it, but for the strategy and the targets. */
function inherited(config: Section, target: Section): Section {
  const { strategy, targets, weight, name, ...outer } = config
  const override_params = { ...sectionOf(outer.override_params), ...sectionOf(target.override_params) }
  return { ...outer, ...target, override_params }
}

/** A config and its targets with keys in snake case: Portkey takes them in camel case too. */
function plain(config: Section): Section {
  const { strategy, targets, ...own } = snake(config)
  return {
    ...(isSection(strategy) && { strategy: snake(strategy) }),
    ...own,
    ...(Array.isArray(targets) && { targets: targets.map(one => plain(sectionOf(one))) }),
  }
}

const snake = (section: Section): Section =>
  Object.fromEntries(
    Object.entries(section).map(([key, value]) => [key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`), value]),
  )

const variableOf = (slug: string): string => `${slug.replace(/\W/g, '_').toUpperCase()}_API_KEY`

/** The provider that the name of a stored credential holds, at its beginning or as one of its words. */
function providerOf(stored = ''): string | undefined {
  const bare = stored.toLowerCase().replaceAll('_', '-')
  return KNOWN.find(one => bare.startsWith(one)) ?? KNOWN.find(one => `-${bare}-`.includes(`-${one}-`))
}

const deploymentOf = ({ azure_deployment_id, deployment_id }: Section): string | undefined =>
  textOf(azure_deployment_id) ?? textOf(deployment_id)

function paramsOf(written: Section, provider: string, model: string): Record<string, unknown> {
  const resource = textOf(written.azure_resource_name) ?? textOf(written.resource_name)
  const milliseconds = Number(written.request_timeout)
  const named = `${PREFIXES[provider] ?? provider}/${deploymentOf(written) ?? model}`
  const params = {
    model: named.replace(/^(vertex_ai\/)anthropic\./, '$1').replace(/^(vertex_ai\/meta)\./, '$1/'),
    api_key: written.api_key,
    api_base: written.custom_host ?? (resource === undefined ? undefined : `https://${resource}.openai.azure.com`),
    aws_region_name: written.aws_region,
    aws_access_key_id: written.aws_access_key_id,
    aws_secret_access_key: written.aws_secret_access_key,
    aws_session_token: written.aws_session_token,
    vertex_project: written.vertex_project_id,
    vertex_location: written.vertex_region,
    timeout: milliseconds > 0 ? milliseconds / 1000 : undefined,
  }
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined))
}

/** Targets with their shares; one of weight zero gets no requests at Portkey. */
function weighted(used: readonly Used[], targets: readonly Section[], report: Report) {
  for (const [index, { weight }] of targets.entries()) {
    if (weight === 0) report.changed(`targets[${index}].weight`, 'a target without a share is left out')
  }
  return used
    .filter(({ written }) => written.weight !== 0)
    .map(({ target, written: { weight } }) => (Number(weight) > 0 ? { model: target, weight: Number(weight) } : target))
}

/** `{"metadata.plan": {"$eq": "paid"}}` → `{plan: "paid"}`; undefined for any other form. */
function tagsOf(query: Section): Section | undefined {
  const parts = Array.isArray(query.$and) ? query.$and.map(sectionOf) : [query]
  const tags: Record<string, unknown> = {}
  for (const [path, test] of parts.flatMap(part => Object.entries(part))) {
    const name = /^metadata\.([\w.-]{1,64})$/.exec(path)?.[1]
    const { $eq, $in, ...others } = sectionOf(test)
    const value = typeof test === 'string' ? test : ($eq ?? $in)
    const isText =
      typeof value === 'string' ||
      (Array.isArray(value) && value.length > 0 && value.every(one => typeof one === 'string'))
    if (name === undefined || Object.keys(others).length > 0 || !isText) return undefined
    tags[name] = value
  }
  return Object.keys(tags).length > 0 ? tags : undefined
}
