/**
 * Changes of an organization's policy by the operator, each with a line in the audit log. An organization goes by its
 * id or its name. Everything rejects with a GatewayError: 404 for what is missing or belongs to another organization,
 * 400 for an invalid value, 503 when the store fails.
 */
import type { Compliance, KeyLoad, PolicyFacts, RuleType, RuleValue } from '../policy.ts'
import type { Actor, LimitChange, LimitInput, LimitRecord, Page } from './accounts.ts'

/** A provider key as commands return it, without its secret. */
export interface ProviderKeyRecord extends KeyLoad {
  readonly id: string
  readonly organization: string
  readonly provider: string
  readonly label: string
  readonly fingerprint: string
  /** Version of the master key that seals it. */
  readonly keyVersion: string
  /** Names of the only models that it is for; null for all. */
  readonly models: readonly string[] | null
  /** Limits of the key. Spending counts from the time when they were set. */
  readonly limits: readonly LimitRecord[]
  readonly createdAt: string
}
/** A provider key to add; `fingerprint` stands for its secret where that is not shown. */
export interface NewProviderKey {
  readonly organization: string
  readonly provider: string
  readonly label: string
  readonly secret: string
  readonly fingerprint: string
  readonly models?: readonly string[] | undefined
  readonly limit?: LimitInput | undefined
  readonly load?: KeyLoad | undefined
}
/** Changes of a provider key. Undefined fields stay unchanged. */
export interface ProviderKeyChanges {
  readonly label?: string | undefined
  /** Null: all. */
  readonly models?: readonly string[] | null | undefined
  readonly limit?: LimitChange | undefined
  /** Null members are removed. */
  readonly load?: { readonly [K in keyof KeyLoad]?: KeyLoad[K] | null } | undefined
}
/** Kinds of values that are sealed under a master key. */
export type SealedKind = 'provider_keys' | 'responses' | 'realtime_secrets' | 'jobs' | 'contents'
/** How a run of `MasterKeyStore.reencrypt` ended. */
export interface Reencryption {
  /** Rows that were under an older master key, of all kinds. */
  readonly reencrypted: number
  /** Ids of the first hundred rows whose master key is missing, or that were modified: they stay as they are. */
  readonly unreadable: readonly string[]
  /** Version of the master key that seals all others now. */
  readonly keyVersion: string
  readonly kinds: Readonly<Record<SealedKind, { readonly reencrypted: number; readonly unreadable: number }>>
}
/** Which master keys the rows of one kind need. */
export interface SealedVersions {
  readonly kind: SealedKind
  /** Versions of the master keys that seal the first and the last thousand rows. */
  readonly versions: readonly string[]
}
/** Master keys, and what is sealed under them. */
export interface MasterKeyStore {
  /** Returns the versions for every kind of stored value. */
  versions(): Promise<SealedVersions[]>
  /** Returns the version that the stores are sealed under, where it is missing here and not `givenUp`. */
  foreign(givenUp: string | undefined): Promise<string | undefined>
  /** Seals every stored value under the newest master key, or under a new one. May be interrupted and run again. */
  reencrypt(withNewKey: boolean, actor: Actor): Promise<Reencryption>
}
/** Organizations' own credentials at providers. */
export interface ProviderKeyStore {
  add(input: NewProviderKey, actor: Actor): Promise<ProviderKeyRecord>
  list(organization?: string, page?: Page): Promise<ProviderKeyRecord[]>
  /** `organization`, where it is given, must be whose key it is. */
  update(
    id: string,
    organization: string | undefined,
    changes: ProviderKeyChanges,
    actor: Actor,
  ): Promise<ProviderKeyRecord>
  /** Removes a manifest and returns its provider key. */
  remove(id: string, organization: string | undefined, actor: Actor): Promise<ProviderKeyRecord>
}

/** An access rule as commands return it. */
export interface RuleRecord {
  readonly id: string
  readonly organization: string
  /** Id of the key that it narrows, or address of the member whose keys it narrows; both null: all keys. */
  readonly key: string | null
  readonly member: string | null
  readonly type: RuleType
  readonly value: RuleValue
  readonly status: 'active' | 'inactive'
  readonly createdAt: string
}
/** An organization, one of its members, or a key. With an organization, the key must be of it. */
export interface RuleScope {
  readonly organization?: string | undefined
  /** An id or an address; only with an organization, and not with a key. */
  readonly member?: string | undefined
  readonly key?: string | undefined
}
/** Access rules. Where `organization` is given, the rule must be of it. */
export interface RuleStore {
  add(input: RuleScope & { readonly type: RuleType; readonly value: RuleValue }, actor: Actor): Promise<RuleRecord>
  list(scope: RuleScope, page?: Page): Promise<RuleRecord[]>
  setStatus(
    id: string,
    status: RuleRecord['status'],
    organization: string | undefined,
    actor: Actor,
  ): Promise<RuleRecord>
  remove(id: string, organization: string | undefined, actor: Actor): Promise<RuleRecord>
}

/** Compliance policies of organizations. */
export interface ComplianceStore {
  /** Null when the organization demands nothing. */
  show(organization: string): Promise<Compliance | null>
  /** Changes the named fields; others stay unchanged. */
  change(organization: string, changes: Partial<Compliance>, actor: Actor): Promise<Compliance>
  clear(organization: string, actor: Actor): Promise<void>
}

/** A custom provider of an organization; `manifest` is JSON text. */
export interface ManifestRecord {
  readonly organization: string
  readonly provider: string
  readonly manifest: string
  readonly createdAt: string
}
/** Manifests of custom providers. */
export interface ManifestStore {
  /** In place of the manifest of the same provider, where there is one. */
  put(input: Omit<ManifestRecord, 'createdAt'>, actor: Actor): Promise<ManifestRecord>
  /** `offset` of them are left out. */
  list(organization?: string, limit?: number, offset?: number): Promise<ManifestRecord[]>
  remove(organization: string, provider: string, actor: Actor): Promise<ManifestRecord>
}

/** All that a store has for the policies of organizations. */
export interface PolicyStores {
  /** Id of an organization. */
  organizationId(organization: string): Promise<string>
  /** No promise where they are known: every request reads them. The same object until something of them changes. */
  facts(orgId: string): PolicyFacts | Promise<PolicyFacts>
  readonly providerKeys: ProviderKeyStore
  readonly masterKeys: MasterKeyStore
  readonly rules: RuleStore
  readonly compliance: ComplianceStore
  readonly manifests: ManifestStore
}

/** The policy stores for the operator. Added values are checked against the catalogue. */
export interface PolicyAdmin extends Omit<PolicyStores, 'facts' | 'organizationId' | 'providerKeys' | 'manifests'> {
  readonly providerKeys: Omit<ProviderKeyStore, 'add'> & {
    /** 404 for a provider that the organization cannot use, 400 for a secret that the provider cannot take. */
    add(input: Omit<NewProviderKey, 'fingerprint'>, actor: Actor): Promise<ProviderKeyRecord>
  }
  readonly manifests: Omit<ManifestStore, 'put'> & {
    /** `manifest` is YAML or JSON as in `providers.d`, without a secret. 400 names the position of a fault in it. */
    declare(organization: string, manifest: string, actor: Actor): Promise<DeclaredProvider>
  }
  /** Returns the `names` that are unknown to the organization, or to the gateway when no organization is given. */
  unknown(organization: string | undefined, names: Pick<RuleValue, 'models' | 'providers'>): Promise<string[]>
}
/** A provider that a manifest declares, with the ids of its models. */
interface DeclaredProvider {
  readonly organization: string
  readonly provider: string
  readonly models: readonly string[]
}
