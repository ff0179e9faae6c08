/** Makes the values by which providers know end users and cached prompts, wherever the operator's account is used. */
import { createHmac } from 'node:crypto'
import type { Exchange } from '../../core/exchange.ts'
import type { Services } from '../../core/ports.ts'
import type { Target } from '../../core/translator.ts'
import { isObject, type Json } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'
import { ownerOf } from '../../policy/owner.ts'
import { isByok } from '../../routing/policy.ts'

/** Names that these fields have on most wires; `Translator.identities` adds others. */
const FIELDS = ['user', 'user_id', 'safety_identifier', 'prompt_cache_key'] as const
const PURPOSE = 'model-gateway identities'
/** Hexadecimal digits: 128 bits, which fit where OpenAI takes 64 characters and Google's labels 63. */
const IDENTITY_CHARACTERS = 32
/** Members of one object, as many as Google takes labels, and characters of a value as JSON: each is hashed. */
const MAX_MEMBERS = 64
const MAX_VALUE_CHARACTERS = 64 * 1024

/** Writes the identities of requests; keeps the key that makes them. */
export class Identities {
  readonly #services: Pick<Services, 'signingKeys'>
  #key: Buffer | undefined

  constructor(services: Pick<Services, 'signingKeys'>) {
    this.#services = services
  }

  /**
   * Replaces each identity of `body` in place; nested objects are copied first, since encoders share them. With an
   * organization's own key all stays as it was written. Throws a 400 for more than is hashed.
   */
  write(body: Json, ex: Exchange, { credential, translator }: Target): void {
    if (isByok(credential)) return
    for (const name of FIELDS) if (body[name] != null) body[name] = this.#identity(body[name], ex, name)
    for (const holder in translator.identities) {
      const given = body[holder]
      const named = translator.identities[holder]
      if (isObject(given)) body[holder] = this.#identities(given, named, ex, holder)
      // A provider may take a text where its wire has an object.
      else if (given != null && !named) body[holder] = this.#identity(given, ex, holder)
    }
  }

  #identities(given: Json, named: readonly string[] | undefined, ex: Exchange, holder: string): Json {
    const made = Object.assign({}, given)
    const names = named ?? Object.keys(given)
    if (names.length > MAX_MEMBERS) throw tooMuch(holder, `${MAX_MEMBERS} members`)
    for (const name of names) {
      if (given[name] != null) made[name] = this.#identity(given[name], ex, `${holder}.${name}`)
    }
    return made
  }

  /** Stays the same while the oldest master key is kept. The organization's id, which some codecs write, is opaque. */
  #identity(value: unknown, { caller: { principal } }: Exchange, param: string): unknown {
    const { orgId, projectId, session = null } = ownerOf(principal!)
    if (value === '' || value === orgId) return value
    this.#key ??= this.#services.signingKeys(PURPOSE).at(-1)!
    const named = JSON.stringify([orgId, projectId, session, value])
    if (named.length > MAX_VALUE_CHARACTERS) throw tooMuch(param, `${MAX_VALUE_CHARACTERS} characters`)
    return createHmac('sha256', this.#key).update(named).digest('hex').slice(0, IDENTITY_CHARACTERS)
  }
}

const tooMuch = (param: string, most: string) =>
  errors.invalidField(param, `it may have at most ${most} with the gateway's credentials.`)
