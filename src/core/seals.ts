/**
 * Seals what a client keeps for a provider (signatures of reasoning, native blocks) with an HMAC over organization,
 * provider and value. Values of other organizations and forged ones never reach a provider.
 */
import { createHmac, type Hmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { WorkBudget, writeCanonical } from '../json/canonical.ts'
import type { Json } from '../json/json.ts'
import { withOpaque } from '../json/opaque.ts'
import { textKey } from '../json/text-key.ts'
import type { Event } from './event.ts'

/** `version` identifies a key and reveals nothing of it. */
interface SealKey {
  /** Eight characters. */
  readonly version: string
  readonly key: KeyObject
}

/** Keys of the seals, equal on all nodes that share a master key. */
export interface SealKeys {
  /** Makes new seals. */
  readonly newest: SealKey
  find(version: string): SealKey | undefined
}

/** `mgs1.<version>.<128 bits in base64url>.<value>` */
const SEALED = /^mgs1\.([0-9a-f]{8})\.([\w-]{22})\.(.*)$/s
const MAC_BYTES = 16

/** Whether the gateway made the value, as its form says. */
export const looksSealed = (value: string): boolean => SEALED.test(value)

/** Maximum seals of one request or one answer; the longest conversations have fewer. */
const MAX_SEALS = 4096
/** JSON values in the native blocks of an answer: a hundred tools of an MCP server have 10,000. */
const MAX_ANSWER_VALUES = 50_000
/**
 * Maximum JSON values in the native blocks of a request. Some wires hold a block in two forms, each of which is
 * checked.
 */
const MAX_REQUEST_VALUES = 100_000
/** Maximum characters sealed in an answer or checked of a request. Pages that a provider read may be files. */
const MAX_SEALED_CHARACTERS = 16 * 1024 * 1024

type Kind = 'value' | 'block'

/** Makes and checks the seals of one organization. */
export class Seals {
  readonly #keys: SealKeys
  readonly #organization: string

  constructor(keys: SealKeys, organization: string) {
    this.#keys = keys
    this.#organization = organization
  }

  /** For the events of one answer. */
  answer(): AnswerSeals {
    return new AnswerSeals(this.#keys, this.#organization)
  }

  /** For the seals of one request. */
  check(): SealCheck {
    return new Checks(this.#keys, this.#organization)
  }
}

/** Seals one answer. What is beyond its bounds goes out without a seal, so it comes back as nothing. */
export class AnswerSeals {
  readonly #keys: SealKeys
  readonly #organization: string
  #left = MAX_SEALS
  #work: WorkBudget | undefined

  constructor(keys: SealKeys, organization: string) {
    this.#keys = keys
    this.#organization = organization
  }

  /** Seals what `event` holds for its provider alone, in place. */
  apply(event: Event): void {
    switch (event.type) {
      case 'reasoning':
        if (event.signature !== undefined) event.signature = this.#value(event.signature)
        if (event.data !== undefined) event.data = this.#value(event.data)
        return
      case 'tool':
        if (event.signature !== undefined) event.signature = this.#value(event.signature)
        return
      case 'passage':
        event.citations = event.citations.map(citation => withOpaque(citation, this.#opaque))
        return
      case 'native': {
        const { provider, block } = event
        const mac = this.#takes('') && blockMac(this.#keys.newest, this.#organization, provider, block, this.#work!)
        if (mac) event.block = { ...block, seal: this.#sealed(mac, provider) }
      }
    }
  }

  readonly #opaque = (value: unknown): unknown => (typeof value === 'string' ? this.#value(value) : value)

  #value(value: string): string {
    if (!this.#takes(value)) return value
    return this.#sealed(valueMac(this.#keys.newest, this.#organization, value), value)
  }

  #takes(value: string): boolean {
    this.#work ??= new WorkBudget(MAX_ANSWER_VALUES, MAX_SEALED_CHARACTERS)
    return this.#left-- > 0 && takes(this.#work, value)
  }

  #sealed(mac: Buffer, shown: string): string {
    return `mgs1.${this.#keys.newest.version}.${mac.toString('base64url')}.${shown}`
  }
}

const begun = ({ key }: SealKey, kind: Kind, organization: string): Hmac =>
  createHmac('sha256', key).update(`${kind}\0${organization}\0`)
const ended = (mac: Hmac): Buffer => mac.digest().subarray(0, MAC_BYTES)

const valueMac = (key: SealKey, organization: string, value: string): Buffer =>
  ended(begun(key, 'value', organization).update(value))

/** Clients may write members in another order. Undefined for a block that nests too deep, or is beyond `work`. */
function blockMac(
  key: SealKey,
  organization: string,
  provider: string,
  block: Readonly<Json>,
  work: WorkBudget,
  without?: readonly string[],
): Buffer | undefined {
  const mac = begun(key, 'block', organization).update(`${provider}\0`)
  return writeCanonical(block, mac, work, without) ? ended(mac) : undefined
}

/** To encode and hash others than ASCII takes longer. */
function takes(work: WorkBudget, text: string): boolean {
  if (text.length > work.characters) return false
  const bytes = Buffer.byteLength(text)
  return work.takesCharacters(bytes === text.length ? bytes : 2 * bytes)
}

/** Members that the gateway adds to a block. */
const ADDED = ['seal', 'provider']

/** Few requests hold any seal: nothing is made before the first one. */
class Checks implements SealCheck {
  readonly #keys: SealKeys
  readonly #organization: string
  #left = MAX_SEALS
  #work: WorkBudget | undefined
  #known: Map<string, string | undefined> | undefined
  /** Providers of blocks: the body of a request and its chat form may share them. */
  #blocks: Map<Readonly<Json>, string | undefined> | undefined

  constructor(keys: SealKeys, organization: string) {
    this.#keys = keys
    this.#organization = organization
  }

  value(sealed: string): string | undefined {
    if (!this.#takes(sealed)) return undefined
    this.#known ??= new Map()
    const key = textKey(sealed)
    if (!this.#known.has(key)) {
      const shown = this.#open(sealed, (key, shown) => valueMac(key, this.#organization, shown))
      this.#known.set(key, shown)
    }
    return this.#known.get(key)
  }

  block(whole: Readonly<Json>): Json | undefined {
    if (typeof whole.seal !== 'string') return undefined
    this.#blocks ??= new Map()
    if (!this.#blocks.has(whole)) this.#blocks.set(whole, this.#providerOf(whole, whole.seal))
    const provider = this.#blocks.get(whole)
    if (provider === undefined) return undefined
    const { seal: _, ...block } = whole
    return (block.provider ?? provider) === provider ? block : undefined
  }

  #providerOf(block: Readonly<Json>, seal: string): string | undefined {
    if (!this.#takes(seal)) return undefined
    return this.#open(seal, (key, shown) => blockMac(key, this.#organization, shown, block, this.#work!, ADDED))
  }

  /** Each time: a text is hashed to find it among those that were checked. */
  #takes(sealed: string): boolean {
    this.#work ??= new WorkBudget(MAX_REQUEST_VALUES, MAX_SEALED_CHARACTERS)
    return takes(this.#work, sealed)
  }

  #open(sealed: string, macOf: (key: SealKey, shown: string) => Buffer | undefined): string | undefined {
    const [, version, mac, shown] = SEALED.exec(sealed) ?? []
    const key = version && this.#keys.find(version)
    if (!key || this.#left-- <= 0) return undefined
    const expected = macOf(key, shown!)
    return expected && timingSafeEqual(expected, Buffer.from(mac!, 'base64url')) ? shown : undefined
  }
}

/** Checks each seal of a request once. What is beyond its bounds does not count as sealed. */
export interface SealCheck {
  /** The value, which begins with its provider; undefined where the seal does not hold. */
  value(sealed: string): string | undefined
  /** The block without its seal; undefined where that does not hold. */
  block(block: Readonly<Json>): Json | undefined
}
