/** Facts of an organization's policy: cached until they change. */
import { LRUCache } from 'lru-cache'
import type { Compliance, PolicyFacts, Rule, RuleType, RuleValue, SealedKey } from '../../core/policy.ts'
import { errors } from '../../lib/error.ts'
import { upTo } from '../../lib/up-to.ts'
import { budgetOf } from '../rules/budgets.ts'
import { readBudgets } from './budgets.ts'
import type { ChangeSource } from './change-source.ts'
import { loadOf } from './provider-keys.ts'
import { type Flag, first, type Sql } from './sql.ts'

const MAX_ORGANIZATIONS = 10_000

interface PolicyRow {
  version: bigint
  compliance: string | null
}
interface RuleRow {
  id: string
  key_id: string | null
  member_id: string | null
  type: string
  value: string
}
interface KeyRow {
  id: string
  provider: string
  label: string
  fingerprint: string
  master_key: string
  nonce: Buffer
  ciphertext: Buffer
  models: string | null
  load: string | null
  limited: Flag
}

interface Known {
  readonly facts: PolicyFacts
  /** Generation in which the facts were last confirmed. */
  generation: number
}

const RULES = 'SELECT id, key_id, member_id, type, value FROM rules WHERE org_id = $1 AND active ORDER BY id'
const KEYS = `
  SELECT id, provider, label, fingerprint, master_key, nonce, ciphertext, models, load,
    EXISTS (SELECT 1 FROM budgets WHERE subject = provider_keys.id) AS limited
  FROM provider_keys WHERE org_id = $1 ORDER BY id`
const MANIFESTS = 'SELECT manifest FROM manifests WHERE org_id = $1 ORDER BY created_at, provider'

/** The `PolicyFacts` of organizations: the same object until their version changes. */
export class PolicyFactsReader {
  readonly #sql: Sql
  readonly #changes: ChangeSource
  readonly #known = new LRUCache<string, Known>(upTo(MAX_ORGANIZATIONS))
  /** Reads under way, with the generation that they began in: requests that come together wait for one. */
  readonly #reading = new Map<string, { readonly facts: Promise<PolicyFacts>; readonly generation: number }>()
  #generation = 0

  constructor(sql: Sql, changes: ChangeSource) {
    this.#sql = sql
    this.#changes = changes
  }

  /** Rejects with a 503 when the database cannot be read and nothing is cached. */
  of(orgId: string): PolicyFacts | Promise<PolicyFacts> {
    const seen = this.#changes.poll()
    if (seen === 'changed') this.#generation++
    else if (seen === 'lost') this.#known.clear()
    const known = this.#known.get(orgId)
    if (known?.generation === this.#generation) return known.facts
    const running = this.#reading.get(orgId)
    if (running?.generation === this.#generation) return running.facts
    const facts = this.#refreshed(orgId, known).finally(() => this.#reading.delete(orgId))
    this.#reading.set(orgId, { facts, generation: this.#generation })
    return facts
  }

  /** Forces a check, after a change of this process. */
  changed(): void {
    this.#generation++
  }

  /** Reads the facts again when the policy's version has changed. A write may concern other organizations. */
  async #refreshed(orgId: string, known: Known | undefined): Promise<PolicyFacts> {
    const generation = this.#generation
    try {
      const text = 'SELECT version, compliance FROM policies WHERE org_id = $1'
      const row = await first<PolicyRow>(this.#sql, text, [orgId])
      const isSame = known?.facts.version === Number(row?.version ?? 0n)
      const facts = isSame ? known.facts : row ? await this.#read(orgId, row) : nothing(orgId)
      this.#known.set(orgId, { facts, generation })
      return facts
    } catch (cause) {
      if (known && !this.#changes.lost) return known.facts
      throw errors.storeUnavailable(cause)
    }
  }

  /** Read the version first: a change during the reading raises it, and is read again. */
  async #read(orgId: string, { version, compliance }: PolicyRow): Promise<PolicyFacts> {
    const rules = await this.#sql.query<RuleRow>(RULES, [orgId])
    const keys = await this.#sql.query<KeyRow>(KEYS, [orgId])
    const manifests = await this.#sql.query<{ manifest: string }>(MANIFESTS, [orgId])
    return {
      orgId,
      version: Number(version),
      rules: rules.map(ruleOf),
      compliance: compliance === null ? undefined : (JSON.parse(compliance) as Compliance),
      keys: await Promise.all(keys.map(row => this.#key(orgId, row))),
      manifests: manifests.map(({ manifest }) => manifest),
    }
  }

  async #key(orgId: string, row: KeyRow): Promise<SealedKey> {
    const { id, provider, label, fingerprint, master_key: version, nonce, ciphertext } = row
    const budgets = row.limited ? await readBudgets(this.#sql, [id], 0) : []
    return {
      ...{ id, orgId, provider, label, fingerprint, sealed: { version, nonce, ciphertext } },
      models: row.models === null ? undefined : (JSON.parse(row.models) as string[]),
      load: loadOf(row),
      budgets: budgets.map(budgetOf),
    }
  }
}

const nothing = (orgId: string): PolicyFacts => ({
  orgId,
  version: 0,
  rules: [],
  compliance: undefined,
  keys: [],
  manifests: [],
})

const ruleOf = (row: RuleRow): Rule => ({
  ...(JSON.parse(row.value) as RuleValue),
  id: row.id,
  type: row.type as RuleType,
  keyId: row.key_id ?? undefined,
  memberId: row.member_id ?? undefined,
})
