/** Offers of models that no file lists, by names from callers or from the provider's list. */
import { LRUCache } from 'lru-cache'
import type { FoundModel, OpenModels } from '../core/catalog.ts'
import { OPEN_SERIES } from '../core/offer.ts'
import type { Mapping, Model } from '../core/translator.ts'

/** No segment of a name is empty or consists of dots: some wires put it into a path. */
const NAME = /^[A-Za-z0-9][\w.:@+-]*(?:\/\w[\w.:@+-]*)*$/
const MAX_NAME_CHARACTERS = 128
/** Cached offers for names from callers; each takes some kilobytes together with its routing state. */
const MAX_CACHED_OFFERS = 256

/** Whether a text is a valid name of a model that no file lists. */
const isOpenName = (name: string): boolean => name.length <= MAX_NAME_CHARACTERS && NAME.test(name)

/** Offers of one provider for models that no file lists. `find` makes one for every valid name. */
export class OpenCatalog implements OpenModels {
  readonly #template: Mapping
  readonly #mapped: ReadonlySet<string>
  readonly #found: () => readonly FoundModel[]
  readonly #given = new LRUCache<string, Mapping>({ max: MAX_CACHED_OFFERS })
  #listed: { readonly of: readonly FoundModel[]; readonly mappings: readonly Mapping[] } = { of: [], mappings: [] }
  #byName = new Map<string, Mapping>()

  readonly searched: boolean

  /**
   * `template`: the properties common to all offers; `mapped`: names mapped to models of the catalogue; `found` returns
   * the provider's latest list.
   */
  constructor(template: Mapping, mapped: ReadonlySet<string>, found?: () => readonly FoundModel[]) {
    this.#template = template
    this.#mapped = mapped
    this.#found = found ?? (() => this.#listed.of)
    this.searched = found !== undefined
  }

  get listed(): readonly Mapping[] {
    const of = this.#found()
    if (this.#listed.of !== of) {
      const mappings = of
        .filter(({ id }) => isOpenName(id) && !this.#mapped.has(id))
        .map(found => this.#offer(found.id, found))
      this.#listed = { of, mappings }
      this.#byName = new Map(mappings.map(mapping => [mapping.externalId, mapping]))
    }
    return this.#listed.mappings
  }

  find(name: string): Mapping | undefined {
    if (this.listed.length > 0) {
      const listed = this.#byName.get(name)
      if (listed) return listed
    }
    const given = this.#given.get(name)
    if (given || !isOpenName(name)) return given
    const mapping = this.#offer(name, { series: OPEN_SERIES })
    this.#given.set(name, mapping)
    return mapping
  }

  #offer(name: string, facts: Pick<Partial<Model>, 'created' | 'series'>): Mapping {
    const { model: unnamed } = this.#template
    const mappings: Mapping[] = []
    const { created = 0, series } = facts
    const model: Model = Object.freeze({ ...unnamed, id: name, name, created, series, mappings })
    const mapping = Object.freeze({ ...this.#template, model, externalId: name })
    mappings.push(mapping)
    Object.freeze(mappings)
    return mapping
  }
}
