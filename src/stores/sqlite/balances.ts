/** Balances of organizations: reserved individually where credit bounds them, updated once per transaction. */
import type { Statement } from 'better-sqlite3'
import type { Money } from '../../core/money.ts'
import type { Exhausted, Principal } from '../../core/ports.ts'
import type { CreditStanding } from '../../limits/alerts.ts'
import { roomIn } from '../rules/budgets.ts'
import type { CreditAccounts } from '../rules/reservations.ts'
import type { Sqlite } from './open.ts'
import type { Participant, Writer } from './writer.ts'

/** Changes of one balance within a transaction. */
interface Change {
  /** Whether its result is to be known. */
  tells?: boolean
  held: Money
  used: Money
}

/** Nano-USD by organization. `reserve` and `release` run within a transaction of the writer. */
export class Balances implements CreditAccounts, Participant {
  readonly #reserve: Statement
  readonly #change: Statement
  readonly #room: Statement<[string], { balance: Money; held: Money }>
  readonly #changeAndTell: Statement<[Money, Money, Money, string], { balance: Money; used: Money }>
  readonly #changes = new Map<string, Change>()
  /** Credits after the last settlement that was to tell them. */
  readonly #known = new Map<string, CreditStanding>()

  constructor(db: Sqlite, writer: Writer) {
    this.#reserve = db.prepare(`
      UPDATE balances SET held = held + ?
      WHERE org_id = ? AND (
        balance - held >= ?
        OR (SELECT account FROM organizations WHERE id = org_id) = 'open'
      )`)
    const change = 'UPDATE balances SET held = held + ?, balance = balance - ?, used = used + ? WHERE org_id = ?'
    this.#change = db.prepare(change)
    this.#changeAndTell = db
      .prepare<[Money, Money, Money, string], { balance: Money; used: Money }>(`${change} RETURNING balance, used`)
      .safeIntegers()
    this.#room = db
      .prepare<[string], { balance: Money; held: Money }>('SELECT balance, held FROM balances WHERE org_id = ?')
      .safeIntegers()
    writer.join(this)
  }

  reserve({ orgId, account }: Principal, amount: Money): boolean {
    if (amount === 0n) return true
    if (account === 'open') {
      this.#of(orgId).held += amount
      return true
    }
    if (this.#reserve.run(amount, orgId, amount).changes > 0) return true
    // Releases of this transaction count.
    return this.#write(orgId) && this.#reserve.run(amount, orgId, amount).changes > 0
  }

  room(orgId: string): Pick<Exhausted, 'room' | 'held'> {
    this.#write(orgId)
    const { balance, held } = this.#room.get(orgId) ?? { balance: 0n, held: 0n }
    return roomIn(balance, held)
  }

  release(orgId: string, held: Money, cost: Money): void {
    const change = this.#of(orgId)
    change.held -= held
    change.used += cost
  }

  /** Within a transaction: `known` has the credits after it. */
  tell(orgId: string): void {
    const change = this.#changes.get(orgId)
    if (change) change.tells = true
  }

  /** Returns credits as the last settlement has left them, once. */
  known(orgId: string): CreditStanding | undefined {
    const known = this.#known.get(orgId)
    this.#known.delete(orgId)
    return known
  }

  beforeCommit(): void {
    for (const orgId of this.#changes.keys()) this.#write(orgId)
  }

  undone(): void {
    this.#changes.clear()
  }

  #of(orgId: string): Change {
    let change = this.#changes.get(orgId)
    if (!change) {
      change = { held: 0n, used: 0n }
      this.#changes.set(orgId, change)
    }
    return change
  }

  /** False when there is nothing to write. */
  #write(orgId: string): boolean {
    const change = this.#changes.get(orgId)
    if (!change) return false
    this.#changes.delete(orgId)
    if (!change.tells) {
      this.#change.run(change.held, change.used, change.used, orgId)
      return true
    }
    const after = this.#changeAndTell.get(change.held, change.used, change.used, orgId)
    if (after) this.#known.set(orgId, { balance: after.balance, credited: after.balance + after.used })
    return true
  }
}
