/** Assembles organizations' policies from stored facts, the master keys and the wires of their providers. */
import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import { issueOf } from '../config/auth.ts'
import { type CustomOptions, linkCustom, readManifest } from '../config/custom.ts'
import { ConfigError } from '../config/error.ts'
import { fingerprint } from '../config/file.ts'
import type { Catalog } from '../core/catalog.ts'
import { namesOf, refsOf } from '../core/offer.ts'
import type { Access, CallerFacts, Policies, Policy, PolicyFacts, Rule, SealedKey } from '../core/policy.ts'
import type { Log, PolicyAdmin, PolicyStores } from '../core/ports.ts'
import type { Credential } from '../core/provider-settings.ts'
import { Seals } from '../core/seals.ts'
import { errors } from '../lib/error.ts'
import { unknownName } from '../lib/nearest.ts'
import { matcher } from '../limits/names.ts'
import { accessOf } from '../policy/rules.ts'
import { type Keyring, placeOf } from '../stores/keyring.ts'

/** The stores and settings that policies are built from. */
export interface PolicyContext extends CustomOptions {
  readonly stores: PolicyStores
  readonly keyring: Keyring
  readonly log: Log
}

const CUSTOM_OFF =
  'Custom providers are off. Set `custom_providers: { enabled: true }` in gateway.yaml to turn them on.'

/** Organizations with own providers whose catalogues outlast a change of their rules. */
const MAX_LINKED_CATALOGS = 256

/** Catalogues with an organization's own providers in them, by the shared one; those of the same manifests. */
interface LinkedCatalogs {
  readonly manifests: readonly string[]
  readonly byShared: WeakMap<Catalog, Catalog>
}

/** One policy per version of an organization: stores return the same facts object while nothing changes. */
export class OrganizationPolicies implements Policies {
  readonly #context: PolicyContext
  readonly #known = new WeakMap<PolicyFacts, Policy>()
  readonly #linked = new LRUCache<string, LinkedCatalogs>({ max: MAX_LINKED_CATALOGS })

  constructor(context: PolicyContext) {
    this.#context = context
  }

  of(orgId: string): Policy | Promise<Policy> {
    const facts = this.#context.stores.facts(orgId)
    return facts instanceof Promise ? facts.then(found => this.#policy(found)) : this.#policy(facts)
  }

  #policy(facts: PolicyFacts): Policy {
    let policy = this.#known.get(facts)
    if (!policy) {
      policy = new OrganizationPolicy(facts, this.#context, this.#catalogsOf(facts))
      this.#known.set(facts, policy)
    }
    return policy
  }

  /** Returns the linked catalogues. Links again only when the manifests have changed: ten of them take up to 100 ms. */
  #catalogsOf({ orgId, manifests }: PolicyFacts): LinkedCatalogs['byShared'] {
    const linked = manifests.length > 0 ? this.#linked.get(orgId) : undefined
    if (linked && isDeepStrictEqual(linked.manifests, manifests)) return linked.byShared
    const byShared: LinkedCatalogs['byShared'] = new WeakMap()
    if (manifests.length > 0) this.#linked.set(orgId, { manifests, byShared })
    return byShared
  }
}

class OrganizationPolicy implements Policy {
  readonly keepsReplies: boolean
  readonly seals: Seals
  readonly #facts: PolicyFacts
  readonly #context: PolicyContext
  readonly #access: Access
  /** Rules of members and keys, by member or key id. */
  readonly #rules = new Map<string, Rule[]>()
  /** Accesses by the ids of member and key that have rules. */
  readonly #accesses = new Map<string, Access>()
  /** Accesses of sessions with a list of models. */
  readonly #accessOfSession = new WeakMap<object, Access>()
  readonly #credentials = new Map<string, readonly Credential[]>()
  readonly #catalogs: LinkedCatalogs['byShared']

  constructor(facts: PolicyFacts, context: PolicyContext, catalogs: LinkedCatalogs['byShared']) {
    this.#facts = facts
    this.#context = context
    this.#catalogs = catalogs
    this.seals = new Seals(context.keyring.seals, facts.orgId)
    this.keepsReplies = facts.compliance?.noLogging !== true
    for (const rule of facts.rules) {
      const narrowed = rule.keyId ?? rule.memberId
      if (narrowed !== undefined) this.#rules.set(narrowed, [...(this.#rules.get(narrowed) ?? []), rule])
    }
    this.#access = this.#accessOf([])
    context.log.debug({ organization: facts.orgId, version: facts.version }, 'organization policy loaded')
  }

  access({ keyId, member, session }: CallerFacts): Access {
    if (session?.models) {
      let access = this.#accessOfSession.get(session)
      if (!access) {
        access = this.#accessOf([member?.id, keyId], session.models)
        this.#accessOfSession.set(session, access)
      }
      return access
    }
    const memberId = member && this.#rules.has(member.id) ? member.id : ''
    const key = this.#rules.has(keyId) ? keyId : ''
    if (memberId === '' && key === '') return this.#access
    const id = `${memberId} ${key}`
    let access = this.#accesses.get(id)
    if (!access) {
      access = this.#accessOf([memberId, key])
      this.#accesses.set(id, access)
    }
    return access
  }

  #accessOf([memberId, keyId]: readonly (string | undefined)[], models?: readonly string[]): Access {
    const { version, rules, compliance } = this.#facts
    const rulesOf = (id: string | undefined) => (id === undefined ? undefined : this.#rules.get(id)) ?? []
    const [ofMember, ofKey] = [rulesOf(memberId), rulesOf(keyId)]
    const scope: Rule = { id: 'scope', type: 'allow_models', models, keyId: undefined, memberId: undefined }
    return accessOf({
      id: [version, ofMember.length > 0 ? memberId : '', ofKey.length > 0 ? keyId : '', ...(models ?? [])].join(' '),
      levels: [
        { whose: 'the organization', rules: rules.filter(rule => (rule.keyId ?? rule.memberId) === undefined) },
        { whose: 'the member', rules: ofMember },
        { whose: 'the API key', rules: ofKey },
        { whose: 'the session', rules: models ? [scope] : [] },
      ],
      compliance,
    })
  }

  catalog(shared: Catalog): Catalog {
    const { orgId, manifests } = this.#facts
    if (manifests.length === 0) return shared
    let catalog = this.#catalogs.get(shared)
    if (!catalog) {
      const warn = (provider: string, issue: string) =>
        this.#context.log.warn({ organization: orgId, provider, issue }, 'custom provider skipped')
      if (shared.customCaps) catalog = linkCustom(orgId, manifests, shared, this.#context, warn)
      else {
        catalog = shared
        warn('custom', CUSTOM_OFF)
      }
      this.#catalogs.set(shared, catalog)
    }
    return catalog
  }

  credentials(providerId: string): readonly Credential[] {
    let known = this.#credentials.get(providerId)
    if (!known) {
      const keys = this.#facts.keys.filter(key => key.provider === providerId)
      known = keys.map(key => this.#open(key, keys.length > 1 ? (key.load?.weight ?? 1) : undefined))
      this.#credentials.set(providerId, known)
    }
    return known
  }

  #open(key: SealedKey, weight: number | undefined): Credential {
    const { id, orgId, provider, label, fingerprint, sealed, models, load: { rpm, tpm } = {}, budgets } = key
    try {
      const secret = this.#context.keyring.open(sealed, placeOf(key))
      const limits = rpm === undefined && tpm === undefined ? undefined : { rpm, tpm }
      return Object.freeze({ id, source: 'byok', secret, fingerprint, weight, limits, label, models, budgets })
    } catch (err) {
      this.#context.log.error({ organization: orgId, provider, id, err }, 'provider key not decrypted')
      throw errors.credentialUnavailable(provider, err)
    }
  }
}

const MAX_SECRET_CHARACTERS = 16 * 1024

/** Policy changes of operators, checked against the catalogue that `current` returns. */
export function policyAdmin(context: PolicyContext, policies: Policies, current: () => Catalog): PolicyAdmin {
  const { stores } = context
  const catalogOf = async (organization: string): Promise<Catalog> => {
    const policy = await policies.of(await stores.organizationId(organization))
    return policy.catalog(current())
  }
  return {
    rules: stores.rules,
    compliance: stores.compliance,
    masterKeys: stores.masterKeys,
    providerKeys: {
      list: (organization, page) => stores.providerKeys.list(organization, page),
      update: (id, organization, changes, actor) => stores.providerKeys.update(id, organization, changes, actor),
      remove: (id, organization, actor) => stores.providerKeys.remove(id, organization, actor),
      async add(input, actor) {
        const { providers } = await catalogOf(input.organization)
        const provider = providers.get(input.provider)
        if (!provider) throw errors.notFound(`${sentence(unknownName('provider', input.provider, providers.keys()))}.`)
        const { scheme } = provider.auth
        if (scheme === 'none') throw errors.badRequest(`The provider ${provider.id} takes no key.`)
        const secret = input.secret.trim()
        const issue = secret === '' ? 'The secret is empty.' : issueOf(scheme, secret)
        if (issue) throw errors.invalidParameters(`${sentence(issue)}.`, 'secret')
        if (secret.length > MAX_SECRET_CHARACTERS) {
          throw errors.invalidParameters(`The secret is longer than ${MAX_SECRET_CHARACTERS} characters.`, 'secret')
        }
        return stores.providerKeys.add({ ...input, secret, fingerprint: fingerprint(secret) }, actor)
      },
    },
    manifests: {
      list: (organization, limit, offset) => stores.manifests.list(organization, limit, offset),
      remove: (organization, provider, actor) => stores.manifests.remove(organization, provider, actor),
      async declare(organization, text, actor) {
        const orgId = await stores.organizationId(organization)
        if (!current().customCaps) throw errors.badRequest(CUSTOM_OFF)
        const declaration = await readManifest(orgId, text, current, context).catch(refuseManifest)
        const { provider, models, manifest } = declaration
        const record = await stores.manifests.put({ organization, provider, manifest }, actor)
        return { organization: record.organization, provider, models }
      },
    },
    async unknown(organization, { models = [], providers = [] }) {
      const catalog = organization === undefined ? current() : await catalogOf(organization)
      const refs = new Set([...catalog.providers.values()].flatMap(refsOf).concat('custom'))
      const names = [...new Set([...catalog.models.values()].flatMap(model => model.mappings.flatMap(namesOf)))]
      const isOpen = (name: string) => {
        const [id = ''] = name.split('/', 1)
        return catalog.open?.get(id)?.find(name.slice(id.length + 1)) !== undefined
      }
      const unknown = models.filter(name => !names.some(matcher(name)!) && !isOpen(name))
      return [...unknown, ...providers.filter(ref => !refs.has(ref))]
    },
  }
}

function refuseManifest(thrown: unknown): never {
  throw thrown instanceof ConfigError ? errors.invalidParameters(`${thrown}`, 'manifest') : thrown
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
