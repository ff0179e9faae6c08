/** The names that clients call, and the virtual models that they become. */
import type { Catalogue } from './manifests.ts'
import type { Deployment } from './models.ts'
import { defaultsOf } from './params.ts'
import type { Report } from './report.ts'
import { listOf, type Section, sectionOf, textOf } from './sections.ts'

/** Names that models of ours may have. `auto` is reserved. */
export const NAME = /^(?!auto$)(?!.*\$\{)[!-~](?:[ -~]{0,126}[!-~])?$/

/** Deployments by name. */
export type Names = ReadonlyMap<string, readonly Deployment[]>

const tagsOf = ({ params }: Deployment): readonly string[] => listOf(params.tags).filter(tag => typeof tag === 'string')

/** Infinite for a deployment without an order, which comes last. */
const orderOf = ({ params }: Deployment): number => (typeof params.order === 'number' ? params.order : Infinity)

/** Names of models that no file lists. */
const OPEN_NAME = /^[A-Za-z0-9][\w.:@+-]*(?:\/\w[\w.:@+-]*)*$/

/** The name with `*` that stands for `name`, the longest first; undefined without one. */
export function patternOf(names: Iterable<string>, name: string): string | undefined {
  const fits = (pattern: string) => {
    const [start = '', end] = pattern.split('*')
    return end !== undefined && name.length > start.length + end.length && name.startsWith(start) && name.endsWith(end)
  }
  return OPEN_NAME.test(name) ? [...names].filter(fits).sort((one, other) => other.length - one.length)[0] : undefined
}

const STRATEGIES: Readonly<Record<string, string>> = {
  'simple-shuffle': 'weight',
  'latency-based-routing': 'latency',
  'cost-based-routing': 'price',
}

/** The strategy of virtual models for `router_settings.routing_strategy`, and whether tags of requests choose targets. */
export function readStrategy({ router_settings }: Section, report: Report): Pick<Pooled, 'strategy' | 'isTagged'> {
  const { routing_strategy, enable_tag_filtering } = sectionOf(router_settings)
  const written = textOf(routing_strategy)
  const isTagged = enable_tag_filtering === true
  for (const key of isTagged ? ['enable_tag_filtering', 'tag_filtering_match_any'] : [])
    report.changed(`router_settings.${key}`, 'targets with when: { tags }, before the others; set compat.litellm')
  const known = written !== undefined && Object.hasOwn(STRATEGIES, written) ? STRATEGIES[written] : undefined
  const key = 'router_settings.routing_strategy'
  if (known) report.carried(key, 'the strategy of virtual models')
  else report.changed(key, 'deployments are drawn by weight')
  report.changed('router_settings.enable_weighted_failover', 'targets that were not drawn follow as they are written')
  return { strategy: known ?? 'weight', isTagged }
}

interface Pooled {
  readonly names: Names
  /** Maps a name to those that are tried after it. */
  readonly fallbacks: ReadonlyMap<string, readonly string[]>
  /** Strategy of the virtual models whose deployments have no order. */
  readonly strategy: string
  readonly isTagged: boolean
}

/** A name with its deployments, those of the lowest order first. */
interface Pool {
  readonly name: string
  readonly deployments: readonly Deployment[]
  readonly isPattern: boolean
  readonly isAlone: boolean
  /** Whether they have several orders. */
  readonly isOrdered: boolean
}

const poolOf = (name: string, written: readonly Deployment[]): Pool => ({
  name,
  deployments: written.toSorted((a, b) => orderOf(a) - orderOf(b) || 0),
  isPattern: name.includes('*'),
  isAlone: written.length === 1,
  isOrdered: new Set(written.map(orderOf)).size > 1,
})

/** Builds a pool of targets for each name. */
export class Pools {
  readonly #names: Names
  readonly #fallbacks: ReadonlyMap<string, readonly string[]>
  readonly #catalogue: Catalogue
  readonly #report: Report
  readonly #strategy: string
  readonly #isTagged: boolean
  readonly #taken: Set<string>
  readonly #virtual: Section[] = []
  /** The targets that stand for the deployments of a name without its fallbacks. */
  readonly #targets = new Map<string, readonly string[]>()

  constructor({ names, fallbacks, strategy, isTagged }: Pooled, catalogue: Catalogue, report: Report) {
    this.#names = names
    this.#fallbacks = fallbacks
    this.#strategy = strategy
    this.#isTagged = isTagged
    this.#catalogue = catalogue
    this.#report = report
    this.#taken = new Set(names.keys())
  }

  /** In the order of the names. */
  async virtualModels(): Promise<Section[]> {
    for (const [name, deployments] of this.#names) this.#targets.set(name, await this.#add(name, deployments))
    for (const [name, others] of this.#fallbacks) {
      const use = [name, ...others].flatMap(one => this.targetsOf(one))
      this.#virtual.push({ id: name, use: [...new Set(use)] })
      this.#taken.add(name)
    }
    return this.#virtual
  }

  isTaken(name: string): boolean {
    return this.#taken.has(name)
  }

  take(name: string): void {
    this.#taken.add(name)
  }

  /** Targets that stand for a name without its fallbacks; none for a name that stands for nothing. */
  targetsOf(name: string): readonly string[] {
    const own = this.#targets.get(name)
    if (own !== undefined) return own
    const pattern = patternOf(this.#names.keys(), name)
    if (pattern === undefined) return []
    const [start = '', end = ''] = pattern.split('*')
    const rest = name.slice(start.length, name.length - end.length)
    return this.#targets.get(pattern)!.map(target => target.replace('*', () => rest))
  }

  /** Whether requests for a name have a virtual model of this name. */
  has(name: string): boolean {
    return this.#names.has(name) || this.#fallbacks.has(name)
  }

  /** Adds the models of a name, and resolves with the targets that stand for all of them. */
  async #add(name: string, written: readonly Deployment[]): Promise<readonly string[]> {
    const pool = poolOf(name, written)
    const { deployments, isPattern, isAlone, isOrdered } = pool
    const defaults = deployments.map(one => (isPattern && !isAlone ? {} : defaultsOf(one, this.#report)))
    const hasDefaults = isAlone && Object.keys(defaults[0]!).length > 0
    const isPlain = isAlone && !hasDefaults && !isPattern
    const isFinal = !this.#fallbacks.has(name)
    const entries = await this.#entries(pool, defaults, !isPlain || !isFinal)
    if (isPlain && isFinal) return [name]
    const isTagged = this.#isTagged && !isAlone && !isPattern && !isOrdered && deployments.some(one => tagsOf(one)[0])
    const use = isTagged ? this.#byTags(name, deployments, entries) : this.#inOrder(pool, entries)
    const targets = use.map(one => String(one.model))
    if (!isFinal && (isPattern || (isAlone && !hasDefaults))) return targets
    const id = isFinal ? name : this.#freeId(`${name}.own`)
    this.#virtual.push({
      id,
      ...(!isFinal && { hidden: true }),
      ...(!isAlone && !isOrdered && !isTagged && { strategy: this.#strategy }),
      use: use.map(one => (Object.keys(one).length === 1 ? one.model : one)),
      ...(hasDefaults && { defaults: defaults[0] }),
    })
    return isPattern ? targets : [id]
  }

  /** Adds the model of each deployment, and returns them as targets with their weights. */
  async #entries(pool: Pool, defaults: readonly Section[], isHidden: boolean): Promise<readonly Section[]> {
    const { name, deployments, isPattern, isAlone, isOrdered } = pool
    const entries: Section[] = []
    for (const [index, deployment] of deployments.entries()) {
      const isShared = deployments.filter(one => orderOf(one) === orderOf(deployment)).length > 1
      const isDrawn = isShared && !(isPattern && isOrdered) && this.#strategy === 'weight'
      this.#report.carried(`${deployment.at}.litellm_params.order`, 'the order of the targets')
      const target = await this.#targetFor(name, deployment, isHidden)
      const weight = isDrawn ? weightOf(deployment, deployments, this.#report) : {}
      const own = defaults[index]!
      const preset = isAlone || Object.keys(own).length === 0 ? undefined : this.#freeId(`${name}.${index + 1}`)
      if (preset !== undefined) this.#virtual.push({ id: preset, hidden: true, use: [target], defaults: own })
      entries.push({ model: preset ?? target, ...weight })
    }
    return entries
  }

  /** Returns a target for each order of the deployments, which are in that order. */
  #inOrder({ name, deployments, isPattern, isOrdered }: Pool, entries: readonly Section[]): readonly Section[] {
    if (!isOrdered || isPattern) return entries
    return [...new Set(deployments.map(orderOf))].map(order =>
      this.#ofGroup(
        name,
        entries.filter((_, index) => orderOf(deployments[index]!) === order),
      ),
    )
  }

  /** Returns targets for requests with a tag, and those for all: of the tag `default`, else without tags, else each one. */
  #byTags(name: string, deployments: readonly Deployment[], entries: readonly Section[]): Section[] {
    const those = (fits: (tags: readonly string[]) => boolean) =>
      entries.filter((_, index) => fits(tagsOf(deployments[index]!)))
    for (const { at } of deployments) this.#report.changed(`${at}.litellm_params.tags`, 'when: { tags } of the target')
    const tags = new Set(deployments.flatMap(tagsOf).filter(tag => tag !== 'default'))
    const tagged = [...tags].map(tag => {
      const [key = '', value = 'true'] = tag.split(/[:=](.*)/s)
      return {
        ...this.#ofGroup(
          name,
          those(all => all.includes(tag)),
        ),
        when: { tags: { [key]: [value] } },
      }
    })
    const rests = [those(all => all.includes('default')), those(all => all.length === 0), entries]
    return [...tagged, this.#ofGroup(name, rests.find(one => one.length > 0)!)]
  }

  /** Returns the target that stands for the deployments of one order or tag. */
  #ofGroup(name: string, group: readonly Section[]): Section {
    if (group.length === 1) return { model: group[0]!.model }
    const id = this.#freeId(`${name}.share`)
    const isPlain = group.every(one => Object.keys(one).length === 1)
    this.#virtual.push({
      id,
      hidden: true,
      strategy: this.#strategy,
      use: isPlain ? group.map(one => one.model) : group,
    })
    return { model: id }
  }

  async #targetFor(name: string, deployment: Deployment, isHidden: boolean): Promise<string> {
    if (!deployment.upstream.model.includes('*')) {
      const { model } = deployment.upstream
      return this.#catalogue.add(
        name.includes('*') ? this.#freeId(NAME.test(model) ? model : 'model') : name,
        deployment,
        isHidden,
      )
    }
    return this.#catalogue.addOpen(deployment)
  }

  #freeId(wanted: string): string {
    let id = wanted
    for (let next = 2; this.#taken.has(id); next++) id = `${wanted}.${next}`
    this.#taken.add(id)
    return id
  }
}

const MAX_WEIGHT = 1_000_000
/** Tokens per minute that weigh as much as a request per minute. */
const TPM_OF_RPM = 1000

/** A deployment of this weight is drawn when no other one can be. */
const FALLBACK_WEIGHT = 1e-6

/** LiteLLM draws by `weight`, else by `rpm`, else by `tpm`. Beside deployments with a weight, one without has none. */
function weightOf({ params, at }: Deployment, all: readonly Deployment[], report: Report): Section {
  if (all.some(one => Number(one.params.weight) > 0)) {
    report.carried(`${at}.litellm_params.weight`)
    return { weight: Math.min(MAX_WEIGHT, Math.max(Number(params.weight) || 0, FALLBACK_WEIGHT)) }
  }
  const key = ['rpm', 'tpm'].find(one => Number(params[one]) > 0)
  if (!key) return {}
  report.changed(`${at}.litellm_params.${key}`, 'the weight of the deployment, no limit')
  return { weight: Math.min(MAX_WEIGHT, Number(params[key]) / (key === 'tpm' ? TPM_OF_RPM : 1)) }
}
