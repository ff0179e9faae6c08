/** Data in the place of what a client's own body names for its provider to fetch. */
import { errors, isBase64, isObject, type Json, type MediaByAddress } from '../../src/plugin.ts'

/** Where a wire's bodies hold media. */
interface MediaPlaces {
  /** Fields of the body that are looked through. */
  readonly roots: readonly string[]
  /** Fields with what goes to tools and comes from them: no provider reads media there. */
  readonly opaque: ReadonlySet<string>
  /** `part` with a file in the place of its address; undefined where it names none of `media`. */
  inlined(part: Readonly<Json>, media: MediaByAddress): Json | undefined
  /** Whether a field of `holder`, which is `at` in its own one, is an address of this wire beside `ADDRESSES`. */
  isAddress?(field: string, holder: Readonly<Json>, at: string | number | undefined): boolean
  /** Whether a provider of this wire holds the file itself. */
  isHeld?(address: string): boolean
}

/** Fields that hold an address on some wire, or an object with it: an engine may read those of several. */
const ADDRESSES: ReadonlySet<string> = new Set(
  ['image', 'file', 'video', 'audio'].flatMap(kind => [`${kind}_url`, `${kind}Url`, `${kind}_uri`, `${kind}Uri`]),
)
/** Fields that hold either data or an address. */
const DATA: ReadonlySet<string> = new Set(['file_data', 'input_audio'])
const DATA_URL = /^data:/i

/** Puts files in place of their addresses in a body. Throws a 400 that names another address, unless `partial`. */
export const mediaIn =
  (places: MediaPlaces) =>
  (body: Readonly<Json>, media: MediaByAddress, partial: boolean): Json => {
    const inlining = new Inlining(media, places, partial)
    const copy: Json = { ...body }
    for (const root of places.roots) if (copy[root] !== undefined) copy[root] = inlining.value(copy[root], root)
    return copy
  }

/** Copies what changes. Takes time by the number of values. */
class Inlining {
  readonly #media: MediaByAddress
  readonly #places: MediaPlaces
  readonly #partial: boolean
  readonly #path: (string | number)[] = []

  constructor(media: MediaByAddress, places: MediaPlaces, partial: boolean) {
    this.#media = media
    this.#places = places
    this.#partial = partial
  }

  value(value: unknown, step: string | number): unknown {
    if (typeof value !== 'object' || value === null) return value
    this.#path.push(step)
    const own = Array.isArray(value) ? this.#list(value) : this.#object(value as Json)
    this.#path.pop()
    return own
  }

  #list(list: readonly unknown[]): readonly unknown[] {
    let copy: unknown[] | undefined
    for (const [at, one] of list.entries()) {
      const own = this.value(one, at)
      if (own === one) continue
      copy ??= [...list]
      copy[at] = own
    }
    return copy ?? list
  }

  #object(given: Readonly<Json>): Readonly<Json> {
    const part = this.#places.inlined(given, this.#media) ?? given
    let copy: Json | undefined
    for (const field in part) {
      const inner = part[field]
      if (!this.#partial && this.#refers(field, part, inner)) throw this.#unfetched(field)
      if (this.#places.opaque.has(field)) continue
      const own = this.value(inner, field)
      if (own === inner) continue
      copy ??= { ...part }
      copy[field] = own
    }
    return copy ?? part
  }

  #refers(field: string, holder: Readonly<Json>, value: unknown): boolean {
    const { isAddress } = this.#places
    const holdsData = DATA.has(field)
    if (!holdsData && !ADDRESSES.has(field) && !isAddress?.(field, holder, this.#path.at(-1))) return false
    const texts = isObject(value) ? [value.url, value.data] : [value]
    return texts.some(text => typeof text === 'string' && this.#isElsewhere(text, holdsData))
  }

  #isElsewhere(text: string, holdsData: boolean): boolean {
    if (text === '' || DATA_URL.test(text) || this.#places.isHeld?.(text)) return false
    return !holdsData || !isBase64(text)
  }

  #unfetched(field: string) {
    const [root, ...rest] = [...this.#path, field]
    const at = rest.reduce<string>(
      (path, step) => (typeof step === 'number' ? `${path}[${step}]` : `${path}.${step}`),
      `${root}`,
    )
    const why = 'this provider takes files only as data, and the gateway does not fetch this field'
    return errors.unsupported(`${at}: ${why}; send the data instead.`, at)
  }
}
