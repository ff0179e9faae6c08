/** Finds the rule for a requested model (docs/rules.md). */
import { LRUCache } from 'lru-cache'
import type { RouteRule, VirtualModel } from '../core/catalog.ts'
import type { Services } from '../core/ports.ts'
import { GatewayError } from '../lib/error.ts'
import { perObject } from '../lib/per-object.ts'
import { upTo } from '../lib/up-to.ts'
import { hasTags, isFrom } from './conditions.ts'
import { withoutSuffix } from './preferences.ts'
import type { RoutingQuery } from './query.ts'
import { resolve } from './resolve.ts'
import { virtualOf } from './virtual-models.ts'

type Asking = Pick<RoutingQuery, 'catalog' | 'principal' | 'asker' | 'tags' | 'isCopy'>

const NOBODY = { orgId: '', orgName: '', projectId: '', keyId: '', keyName: '' }
/** Callers and names whose rules are remembered. */
const MAX_CACHED_CALLERS = 10_000

/** Rules in question for a name and a caller. Only tags are left to check. */
interface Remembered {
  /** Place of the first rule without tags; infinite without one. */
  readonly plain: number
  /** Places of rules with tags, by the first of these and each of its values. */
  readonly tagged: ReadonlyMap<string, readonly number[]> | undefined
}

/** A compiled list of rules. Requests of known callers cost one lookup, however many rules there are. */
class RuleTable {
  readonly #rules: readonly RouteRule[]
  /** Places of rules that name one model. */
  readonly #exact = new Map<string, number[]>()
  /** Places of all other rules, with their patterns. */
  readonly #open: { readonly place: number; readonly pattern: string | undefined }[] = []
  readonly #remembered = new LRUCache<string, Remembered>(upTo(MAX_CACHED_CALLERS))
  readonly #readsKeys: boolean
  readonly #readsProjects: boolean

  constructor(rules: readonly RouteRule[]) {
    this.#rules = rules
    this.#readsKeys = rules.some(({ match }) => match.keys !== undefined)
    this.#readsProjects = rules.some(({ match }) => match.projects !== undefined)
    for (const [place, { match }] of rules.entries()) {
      const { model } = match
      if (model === undefined || /[*?]/.test(model)) this.#open.push({ place, pattern: model })
      else append(this.#exact, model, place)
    }
  }

  find(name: string, query: Asking): RouteRule | undefined {
    const { orgId, orgName, projectId, keyId, keyName } = query.asker ?? query.principal ?? NOBODY
    // Callers whom no rule tells apart share an entry. Names count too, since an organization may be renamed.
    const byKey = this.#readsKeys ? `${keyId}\n${keyName}` : ''
    const key = `${byKey}\n${this.#readsProjects ? projectId : ''}\n${orgId}\n${orgName}\n${name}`
    let known = this.#remembered.get(key)
    if (!known) {
      known = this.#inQuestion(name, query)
      this.#remembered.set(key, known)
    }
    let first = known.plain
    for (const [tag, value] of known.tagged ? (query.tags ?? []) : []) {
      const place = known
        .tagged!.get(`${tag}\n${value}`)
        ?.find(one => hasTags(this.#rules[one]!.match.tags!, query.tags))
      if (place !== undefined && place < first) first = place
    }
    return this.#rules[first]
  }

  #inQuestion(name: string, query: Asking): Remembered {
    const names = namesOf(name, query)
    const places = [
      ...names.flatMap(one => this.#exact.get(one) ?? []),
      ...this.#open
        .filter(({ pattern }) => pattern === undefined || names.some(one => fits(one, pattern)))
        .map(({ place }) => place),
    ].sort((a, b) => a - b)
    const tagged = new Map<string, number[]>()
    for (const place of places) {
      const { tags, ...others } = this.#rules[place]!.match
      if (!isFrom(others, query)) continue
      if (!tags) return { plain: place, tagged: tagged.size > 0 ? tagged : undefined }
      const [tag, values] = Object.entries(tags)[0]!
      for (const value of [values].flat()) append(tagged, `${tag}\n${value}`, place)
    }
    return { plain: Number.POSITIVE_INFINITY, tagged: tagged.size > 0 ? tagged : undefined }
  }
}

/** The virtual model that a request names, or that a rule names in its place. */
export function virtualFor(query: Asking & Pick<RoutingQuery, 'request'>): VirtualModel | undefined {
  const { name } = withoutSuffix(query.request.model)
  return virtualOf(query.catalog, ruleFor(name, query)?.use ?? name)
}

const tableOf = perObject((rules: readonly RouteRule[]) => new RuleTable(rules))

/** Counts a rule that moves or refuses a request; copies are counted as they begin. */
export function countRule({ metrics }: Pick<Services, 'metrics'>, { name, use, deny }: RouteRule): void {
  if (deny !== undefined) metrics.ruleApplied(name, 'deny')
  else if (use !== undefined) metrics.ruleApplied(name, 'use')
}

/** The first rule that matches a name without its suffix; undefined without one. */
export function ruleFor(name: string, query: Asking): RouteRule | undefined {
  const { rules } = query.catalog
  if (!rules || query.isCopy) return undefined
  return tableOf(rules).find(name, query)
}

/** Names that rules may mean: as written, the model's id, and both with its provider. */
function namesOf(name: string, { catalog, principal }: Asking): readonly string[] {
  if (catalog.virtual?.has(name)) return [name]
  try {
    const meant = resolve(catalog, name, principal)
    if (meant.kind !== 'model') return [name]
    const { id } = meant.model
    return [...new Set([name, meant.name, id, ...(meant.provider ? [`${meant.provider.id}/${id}`] : [])])]
  } catch (thrown) {
    if (thrown instanceof GatewayError) return [name]
    throw thrown
  }
}

/** Whether a name fits a pattern. A mismatch only moves the last `*`, which bounds the work by both lengths. */
function fits(name: string, pattern: string): boolean {
  let [at, place, star, resumed] = [0, 0, -1, 0]
  while (at < name.length) {
    if (pattern[place] === '*') {
      star = place++
      resumed = at
    } else if (pattern[place] === '?' || pattern[place] === name[at]) {
      place++
      at++
    } else if (star >= 0) {
      place = star + 1
      at = ++resumed
    } else return false
  }
  while (pattern[place] === '*') place++
  return place === pattern.length
}

function append(lists: Map<string, number[]>, key: string, place: number): void {
  const list = lists.get(key)
  if (list) list.push(place)
  else lists.set(key, [place])
}
