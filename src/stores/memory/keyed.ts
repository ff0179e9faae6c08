/** Values of counters by their keys. What clients name, and who they are, displaces no counter of a record. */
import { LRUCache } from 'lru-cache'
import { upTo } from '../../lib/up-to.ts'
import { FairEntries } from './fair-entries.ts'

/** Keys of records: organizations, projects, members, keys, models. There are as many as the operator makes. */
const MAX_RECORD_COUNTERS = 50_000
/** Keys with a name that an organization's clients choose: end users, tags, sessions. They begin with "named" and its id. */
const MAX_NAMED_COUNTERS = 20_000
/** Keys with the address of a client, and the names of logged limits. */
const MAX_ADDRESS_COUNTERS = 10_000

/** A value for each key and window, made when it is needed. Beyond a bound the least recently used are forgotten. */
export class Keyed<V extends object> {
  readonly #records = new LRUCache<string, V>(upTo(MAX_RECORD_COUNTERS))
  readonly #named = new FairEntries<V>({ limit: MAX_NAMED_COUNTERS })
  readonly #addresses = new LRUCache<string, V>(upTo(MAX_ADDRESS_COUNTERS))
  readonly #make: (key: string, windowMs: number) => V

  constructor(make: (key: string, windowMs: number) => V) {
    this.#make = make
  }

  of(key: string, windowMs: number): V {
    const name = `${windowMs} ${key}`
    const found = this.#records.get(name) ?? this.#named.get(name) ?? this.#addresses.get(name)
    if (found) return found
    const made = this.#make(key, windowMs)
    const tenant = /^named \S+ /.exec(key)?.[0]
    if (tenant !== undefined) this.#named.set(tenant, name, made, 1, Number.POSITIVE_INFINITY)
    else (/^(?:address|oauth|limit) /.test(key) ? this.#addresses : this.#records).set(name, made)
    return made
  }

  values(): V[] {
    const named = [...this.#named.all()].map(({ value }) => value)
    return [...this.#records.values(), ...named, ...this.#addresses.values()]
  }
}
