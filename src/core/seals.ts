/**
 * Seals what a client keeps for a provider (signatures of reasoning, native blocks) with an HMAC over organization,
 * provider and value. Values of other organizations and forged ones never reach a provider.
 */
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Event } from './event.ts'
import { isObject, type Json } from './json.ts'
import { textKey } from './text-key.ts'

/** `version` identifies a key and reveals nothing of it. */
interface SealKey {
  /** Eight characters. */
  readonly version: string
  readonly key: KeyObject
}

/** The same on all nodes that share a master key. */
export interface SealKeys {
  /** Makes new seals. */
  readonly newest: SealKey
  find(version: string): SealKey | undefined
}

/** `mgs1.<version>.<128 bits in base64url>.<value>` */
const SEALED = /^mgs1\.([0-9a-f]{8})\.([\w-]{22})\.(.*)$/s
const MAC_BYTES = 16
/** Of one request; more than the longest conversations hold. What is beyond them does not count as sealed. */
const MAX_CHECKS = 4096
const MAX_DEPTH = 128

type Kind = 'value' | 'block'

/** Makes and checks the seals of one organization. */
export class Seals {
  readonly #keys: SealKeys
  readonly #organization: string

  constructor(keys: SealKeys, organization: string) {
    this.#keys = keys
    this.#organization = organization
  }

  /** Seals what `event` holds for its provider alone, in place. */
  apply(event: Event): void {
    switch (event.type) {
      case 'reasoning':
        if (event.signature !== undefined) event.signature = this.#sealed('value', event.signature, event.signature)
        if (event.data !== undefined) event.data = this.#sealed('value', event.data, event.data)
        return
      case 'tool':
        if (event.signature !== undefined) event.signature = this.#sealed('value', event.signature, event.signature)
        return
      case 'native': {
        const { provider, block } = event
        const content = contentOf(provider, block)
        if (content !== undefined) event.block = { ...block, seal: this.#sealed('block', content, provider) }
      }
    }
  }

  /** For the seals of one request. */
  check(): SealCheck {
    return new Checks(this.#keys, this.#organization)
  }

  #sealed(kind: Kind, content: string, shown: string): string {
    const key = this.#keys.newest
    return `mgs1.${key.version}.${macOf(key, kind, this.#organization, content).toString('base64url')}.${shown}`
  }
}

function macOf({ key }: SealKey, kind: Kind, organization: string, content: string): Buffer {
  const mac = createHmac('sha256', key).update(`${kind}\0${organization}\0${content}`)
  return mac.digest().subarray(0, MAC_BYTES)
}

/** Few requests hold any seal: nothing is made before the first one. */
class Checks implements SealCheck {
  readonly #keys: SealKeys
  readonly #organization: string
  #left = MAX_CHECKS
  #known: Map<string, string | undefined> | undefined

  constructor(keys: SealKeys, organization: string) {
    this.#keys = keys
    this.#organization = organization
  }

  value(sealed: string): string | undefined {
    this.#known ??= new Map()
    const key = textKey(sealed)
    if (!this.#known.has(key)) {
      const shown = this.#open('value', sealed, shown => shown)
      this.#known.set(key, shown)
    }
    return this.#known.get(key)
  }

  block({ seal, ...block }: Readonly<Json>): Json | undefined {
    if (typeof seal !== 'string') return undefined
    const { provider: named, ...rest } = block
    const provider = this.#open('block', seal, shown => contentOf(shown, rest))
    return provider !== undefined && (named ?? provider) === provider ? block : undefined
  }

  #open(kind: Kind, sealed: string, content: (shown: string) => string | undefined): string | undefined {
    const [, version, mac, shown] = SEALED.exec(sealed) ?? []
    const key = version && this.#keys.find(version)
    if (!key || this.#left-- <= 0) return undefined
    const value = content(shown!)
    const expected = value === undefined ? undefined : macOf(key, kind, this.#organization, value)
    return expected && timingSafeEqual(expected, Buffer.from(mac!, 'base64url')) ? shown : undefined
  }
}

/** Checks each seal of a request once. */
export interface SealCheck {
  /** The value, which begins with its provider; undefined where the seal does not hold. */
  value(sealed: string): string | undefined
  /** The block without its seal; undefined where that does not hold. */
  block(block: Readonly<Json>): Json | undefined
}

/** Clients may write members in another order. Undefined for a block that nests too deeply to be written. */
function contentOf(provider: string, block: Readonly<Json>): string | undefined {
  try {
    return `${provider}\0${JSON.stringify(ordered(block, 0))}`
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined
    throw thrown
  }
}

function ordered(value: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) throw new RangeError('too deep')
  if (Array.isArray(value)) return value.map(item => ordered(item, depth + 1))
  if (!isObject(value)) return value
  const names = Object.keys(value).sort()
  const members = names.map(name => [name, ordered(value[name], depth + 1)])
  return { members: members.filter(([, member]) => member !== undefined) }
}
