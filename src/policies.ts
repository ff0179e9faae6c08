/** Puts organizations' policies together: what is kept of them, the master keys, and the wires of their providers. */
import { problemOf } from './config/auth.ts'
import { type CustomOptions, linkCustom, readManifest } from './config/custom.ts'
import { ConfigError } from './config/error.ts'
import { fingerprint } from './config/file.ts'
import { unknownName } from './config/nearest.ts'
import type { Catalog, Credential } from './core/catalog.ts'
import { errors } from './core/error.ts'
import { namesOf, refsOf } from './core/offer.ts'
import type { Access, Policies, Policy, PolicyFacts, SealedKey } from './core/policy.ts'
import type { Log, PolicyAdmin, PolicyStores } from './core/ports.ts'
import { accessOf } from './core/rules.ts'
import { type Keyring, placeOf } from './stores/keyring.ts'

export interface PolicyParts extends CustomOptions {
  readonly stores: PolicyStores
  readonly keyring: Keyring
  readonly log: Log
}

/** One policy for each state of an organization: the stores give the same facts while nothing changes. */
export class OrganizationPolicies implements Policies {
  readonly #parts: PolicyParts
  readonly #known = new WeakMap<PolicyFacts, Policy>()

  constructor(parts: PolicyParts) {
    this.#parts = parts
  }

  of(orgId: string): Policy | Promise<Policy> {
    const facts = this.#parts.stores.facts(orgId)
    return facts instanceof Promise ? facts.then(found => this.#policy(found)) : this.#policy(facts)
  }

  #policy(facts: PolicyFacts): Policy {
    let policy = this.#known.get(facts)
    if (!policy) {
      policy = new OrganizationPolicy(facts, this.#parts)
      this.#known.set(facts, policy)
    }
    return policy
  }
}

class OrganizationPolicy implements Policy {
  readonly keepsReplies: boolean
  readonly #facts: PolicyFacts
  readonly #parts: PolicyParts
  readonly #access: Access
  /** Of the keys that have rules of their own. */
  readonly #accessByKey = new Map<string, Access>()
  readonly #credentials = new Map<string, readonly Credential[]>()
  readonly #catalogs = new WeakMap<Catalog, Catalog>()

  constructor(facts: PolicyFacts, parts: PolicyParts) {
    this.#facts = facts
    this.#parts = parts
    this.keepsReplies = facts.compliance?.noLogging !== true
    const { orgId, version, rules, compliance } = facts
    const organizationRules = rules.filter(({ keyId }) => keyId === undefined)
    this.#access = accessOf({ id: `${version}`, organizationRules, keyRules: [], compliance })
    for (const keyId of new Set(rules.map(rule => rule.keyId))) {
      if (keyId === undefined) continue
      const keyRules = rules.filter(rule => rule.keyId === keyId)
      this.#accessByKey.set(keyId, accessOf({ id: `${version} ${keyId}`, organizationRules, keyRules, compliance }))
    }
    parts.log.debug({ organization: orgId, version }, 'the policy of an organization is read')
  }

  access(keyId: string): Access {
    return this.#accessByKey.get(keyId) ?? this.#access
  }

  catalog(shared: Catalog): Catalog {
    const { orgId, manifests } = this.#facts
    if (manifests.length === 0) return shared
    let catalog = this.#catalogs.get(shared)
    if (!catalog) {
      catalog = linkCustom(orgId, manifests, shared, this.#parts, (provider, why) =>
        this.#parts.log.warn({ organization: orgId, provider }, `an own provider is left out: ${why}`),
      )
      this.#catalogs.set(shared, catalog)
    }
    return catalog
  }

  credentials(providerId: string): readonly Credential[] {
    let known = this.#credentials.get(providerId)
    if (!known) {
      known = this.#facts.keys.filter(key => key.provider === providerId).map(key => this.#open(key))
      this.#credentials.set(providerId, known)
    }
    return known
  }

  #open(key: SealedKey): Credential {
    const { id, orgId, provider, label, fingerprint, sealed } = key
    try {
      const secret = this.#parts.keyring.open(sealed, placeOf(key))
      return Object.freeze({ id, source: 'byok', secret, fingerprint, label })
    } catch (err) {
      this.#parts.log.error({ organization: orgId, provider, id, err }, 'a provider key cannot be opened')
      throw errors.credentialUnavailable(provider, err)
    }
  }
}

const MAX_SECRET = 16 * 1024

/** What the operator may change, checked against the catalogue that `current` gives. */
export function policyAdmin(parts: PolicyParts, policies: Policies, current: () => Catalog): PolicyAdmin {
  const { stores } = parts
  const catalogOf = async (organization: string): Promise<Catalog> => {
    const policy = await policies.of(stores.organizationId(organization))
    return policy.catalog(current())
  }
  return {
    rules: stores.rules,
    compliance: stores.compliance,
    providerKeys: {
      list: organization => stores.providerKeys.list(organization),
      remove: (id, organization, actor) => stores.providerKeys.remove(id, organization, actor),
      reencrypt: (withNewKey, actor) => stores.providerKeys.reencrypt(withNewKey, actor),
      async add(input, actor) {
        const { providers } = await catalogOf(input.organization)
        const provider = providers.get(input.provider)
        if (!provider) throw errors.notFound(`${sentence(unknownName('provider', input.provider, providers.keys()))}.`)
        const { scheme } = provider.auth
        if (scheme === 'none') throw errors.badRequest(`The provider ${provider.id} wants no key.`)
        const secret = input.secret.trim()
        const problem = secret === '' ? 'the secret is empty' : problemOf(scheme, secret)
        if (problem) throw errors.invalidParameters(`${sentence(problem)}.`, 'secret')
        if (secret.length > MAX_SECRET) {
          throw errors.invalidParameters(`The secret is longer than ${MAX_SECRET} characters.`, 'secret')
        }
        return stores.providerKeys.add({ ...input, secret, fingerprint: fingerprint(secret) }, actor)
      },
    },
    manifests: {
      list: organization => stores.manifests.list(organization),
      remove: (organization, provider, actor) => stores.manifests.remove(organization, provider, actor),
      async declare(organization, text, actor) {
        const orgId = stores.organizationId(organization)
        const { provider, models, manifest } = readable(() => readManifest(orgId, text, current(), parts))
        const record = await stores.manifests.put({ organization, provider, manifest }, actor)
        return { organization: record.organization, provider, models }
      },
    },
    async unknown(organization, { models = [], providers = [] }) {
      const catalog = await catalogOf(organization)
      const refs = new Set([...catalog.providers.values()].flatMap(refsOf).concat('custom'))
      const names = new Set([...catalog.models.values()].flatMap(model => model.mappings.flatMap(namesOf)))
      return [...models.filter(name => !names.has(name)), ...providers.filter(ref => !refs.has(ref))]
    },
  }
}

function readable<T>(read: () => T): T {
  try {
    return read()
  } catch (thrown) {
    throw thrown instanceof ConfigError ? errors.invalidParameters(`${thrown}`, 'manifest') : thrown
  }
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
