/** Facts of an organization's policy: cached until they change. */
import type { Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import type { Compliance, PolicyFacts, Rule, RuleType, RuleValue, SealedKey } from '../../core/policy.ts'
import { errors } from '../../lib/error.ts'
import { budgetOf } from '../rules/budgets.ts'
import { BudgetReader } from './budgets.ts'
import { ChangeDetector } from './change-detector.ts'
import type { Sqlite } from './open.ts'

const MAX_ORGANIZATIONS = 10_000

interface PolicyRow {
  version: number
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
  limited: number
}

interface Known {
  readonly facts: PolicyFacts
  /** Database generation in which the facts were last confirmed. */
  generation: number
}

/** The `PolicyFacts` of organizations: the same object until their version changes. */
export class PolicyReader {
  readonly #policy: Statement<[string], PolicyRow>
  readonly #rules: Statement<[string], RuleRow>
  readonly #keys: Statement<[string], KeyRow>
  readonly #budgets: BudgetReader
  readonly #manifests: Statement<[string], string>
  readonly #changes: ChangeDetector
  readonly #known = new LRUCache<string, Known>({ max: MAX_ORGANIZATIONS })
  #generation = 0

  /** `clock`: monotonic, in milliseconds. */
  constructor(db: Sqlite, clock?: () => number) {
    this.#policy = db.prepare('SELECT version, compliance FROM policies WHERE org_id = ?')
    this.#budgets = new BudgetReader(db)
    this.#rules = db.prepare(
      'SELECT id, key_id, member_id, type, value FROM rules WHERE org_id = ? AND active = 1 ORDER BY id',
    )
    this.#keys = db.prepare(`
      SELECT id, provider, label, fingerprint, master_key, nonce, ciphertext, models,
        EXISTS (SELECT 1 FROM budgets WHERE subject = provider_keys.id) AS limited
      FROM provider_keys WHERE org_id = ? ORDER BY id`)
    this.#manifests = db.prepare<[string], string>(
      'SELECT manifest FROM manifests WHERE org_id = ? ORDER BY created_at, provider',
    )
    this.#manifests.pluck()
    this.#changes = new ChangeDetector(db, clock)
  }

  /** Throws a 503 when the database cannot be read and nothing is cached. */
  of(orgId: string): PolicyFacts {
    const seen = this.#changes.poll()
    if (seen === 'changed') this.#generation++
    else if (seen === 'lost') this.#known.clear()
    const known = this.#known.get(orgId)
    if (known?.generation === this.#generation) return known.facts
    try {
      return this.#refresh(orgId, known)
    } catch (cause) {
      if (known && !this.#changes.lost) return known.facts
      throw errors.storeUnavailable(cause)
    }
  }

  /** Forces a check: `data_version` does not count changes of this process. */
  changed(): void {
    this.#generation++
  }

  /** Other processes write with every request; only its version tells whether this policy changed. */
  #refresh(orgId: string, known: Known | undefined): PolicyFacts {
    const row = this.#policy.get(orgId)
    const version = row?.version ?? 0
    if (known?.facts.version === version) {
      known.generation = this.#generation
      return known.facts
    }
    const facts = row ? this.#read(orgId, row) : nothing(orgId)
    this.#known.set(orgId, { facts, generation: this.#generation })
    return facts
  }

  /** Read the version first: a change during the reading raises it, and is read again. */
  #read(orgId: string, { version, compliance }: PolicyRow): PolicyFacts {
    return {
      orgId,
      version,
      rules: this.#rules.all(orgId).map(ruleOf),
      compliance: compliance === null ? undefined : (JSON.parse(compliance) as Compliance),
      keys: this.#keys.all(orgId).map(row => this.#key(orgId, row)),
      manifests: this.#manifests.all(orgId),
    }
  }

  #key(orgId: string, row: KeyRow): SealedKey {
    const { id, provider, label, fingerprint, master_key: version, nonce, ciphertext } = row
    const budgets = row.limited ? this.#budgets.of([id], 0) : []
    return {
      ...{ id, orgId, provider, label, fingerprint, sealed: { version, nonce, ciphertext } },
      models: row.models === null ? undefined : (JSON.parse(row.models) as string[]),
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
