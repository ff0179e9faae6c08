/** Listings of the catalogue as JSON, each made once. */
import type { Catalog } from '../core/catalog.ts'
import type { Mapping } from '../core/translator.ts'
import { perObject } from '../lib/per-object.ts'
import { scheduler } from '../limits/scheduler.ts'
import type { View } from './model-view.ts'

/** Listings of one day and one set of discovered models, by view and kind. */
interface Listings {
  readonly day: string
  readonly found: readonly (readonly Mapping[])[]
  readonly made: Map<string, Buffer | Promise<Buffer>>
}

const listingsOf = perObject((_: object) => new WeakMap<Catalog, Listings>())

/** Bytes of all listings: each session may have its own view. Beyond them the oldest are dropped. */
const MAX_LISTINGS_BYTES = 64 * 1024 * 1024
/** Bytes that one takes beside its JSON. */
const ENTRY_BYTES = 600
const kept: { readonly made: Listings['made']; readonly key: string; readonly bytes: number }[] = []
let keptBytes = 0

function keep(made: Listings['made'], key: string, listing: Buffer): void {
  made.set(key, listing)
  const bytes = listing.length + ENTRY_BYTES
  kept.push({ made, key, bytes })
  keptBytes += bytes
  while (keptBytes > MAX_LISTINGS_BYTES) {
    const oldest = kept.shift()!
    keptBytes -= oldest.bytes
    oldest.made.delete(oldest.key)
  }
}

/**
 * Each listing is built once as JSON per view, catalogue, day and kind, since any caller may request it at any rate.
 * Listings of earlier days are dropped.
 */
export function listing(
  { catalog, audience, name, tenant }: View,
  kind: string,
  day: string,
  make: () => object,
): Buffer | Promise<Buffer> {
  const byCatalog = listingsOf(audience)
  const found = [...(catalog.open?.values() ?? [])].map(({ listed }) => listed)
  let known = byCatalog.get(catalog)
  if (known?.day !== day || found.some((listed, at) => listed !== known!.found[at])) {
    known = { day, found, made: new Map() }
    byCatalog.set(catalog, known)
  }
  const { made } = known
  const key = `${name},${kind}`
  let one = made.get(key)
  if (!one) {
    one = built(tenant, make, made, key)
    made.set(key, one)
  }
  return one
}

async function built(tenant: string, make: () => object, made: Listings['made'], key: string): Promise<Buffer> {
  try {
    const bytes = await scheduler.run(tenant, () => Buffer.from(JSON.stringify(make())))
    keep(made, key, bytes)
    return bytes
  } catch (thrown) {
    made.delete(key)
    throw thrown
  }
}
