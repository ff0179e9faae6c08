/** Spending limits in memory. */
import type { Money } from '../../../core/money.ts'
import type { Budget, BudgetState, LimitChange, LimitInput, LimitRecord } from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import { storable } from '../../rules/amounts.ts'
import { budgetState } from '../../rules/budgets.ts'
import { limitRecord, limitSetting, spentSince } from '../../rules/limits.ts'
import { order, type Tables } from './tables.ts'

/** Limits by the id of a key, session, member or provider key; changes are made within a transaction. */
export class Limits {
  readonly #tables: Tables

  constructor(tables: Tables) {
    this.#tables = tables
  }

  /** A session's first, then a member's, then a key's; of each the total limit first. */
  states(subjects: readonly (string | null | undefined)[]): BudgetState[] {
    return this.#tables.budgets
      .filter(({ subject }) => subjects.includes(subject))
      .sort((a, b) => order(b.of, a.of) || Number(b.period === 'total') - Number(a.period === 'total'))
      .map(account => budgetState(account, this.#tables.now()))
  }

  of(subject: string): LimitRecord[] {
    return this.states([subject]).map(limitRecord)
  }

  /** Requests that count against a limit of the subject run. */
  isHeld(subject: string): boolean {
    return this.states([subject]).some(({ held }) => held > 0n)
  }

  /** Within a transaction. */
  change(of: Budget['of'], subject: string, change: LimitChange): void {
    if ('set' in change) this.#set(of, subject, change.set)
    else this.#delete(one => one.subject === subject && (one.period === 'total') === (change.drop === 'total'))
  }

  forget(subject: string): void {
    this.#delete(one => one.subject === subject)
  }

  /** Moves all limits and their spending to another subject. */
  move(from: string, to: string): void {
    const { budgets } = this.#tables
    for (const one of budgets.filter(({ subject }) => subject === from)) budgets.set(one.id, { ...one, subject: to })
  }

  #delete(test: (budget: Budget & { readonly subject: string }) => boolean): void {
    for (const { id } of this.#tables.budgets.filter(test)) this.#tables.budgets.delete(id)
  }

  #set(of: Budget['of'], subject: string, input: LimitInput): void {
    const { budgets, now } = this.#tables
    const setting = limitSetting(this.states([subject]), input, now())
    if ('raises' in setting) {
      budgets.set(setting.raises, { ...budgets.get(setting.raises)!, limit: input.amount })
      return
    }
    const { replaces, period, zone, periodAt } = setting
    if (replaces !== undefined) budgets.delete(replaces)
    const id = shortId()
    const keys = this.#keysOf(of, subject)
    const spent = storable(this.#spentSince(periodAt, keys))
    const held = this.#adopt(id, keys)
    budgets.set(id, { id, subject, of, limit: input.amount, period, zone, periodAt, spent, held })
  }

  /** Running requests count against a limit that is set meanwhile: with their holds. */
  #adopt(id: string, keys: ReadonlySet<string>): Money {
    let sum = 0n
    for (const hold of this.#tables.holds.filter(({ principal }) => keys.has(principal.keyId))) {
      const budgets = JSON.stringify([...(JSON.parse(hold.budgets ?? '[]') as string[]), id])
      this.#tables.holds.set(hold.id, { ...hold, budgets })
      sum += hold.amount
    }
    return sum
  }

  /** A key and its predecessors, or all keys of a member with their predecessors. */
  #keysOf(of: Budget['of'], subject: string): ReadonlySet<string> {
    const own = new Set<string>()
    const add = (id: string | null): void => {
      const key = id === null ? undefined : this.#tables.keys.get(id)
      if (!key || own.has(key.id)) return
      own.add(key.id)
      add(key.succeeds)
    }
    if (of === 'key') add(subject)
    if (of === 'member') for (const key of this.#tables.keys.all()) if (key.createdBy === subject) add(key.id)
    return own
  }

  #spentSince(at: number, keys: ReadonlySet<string>): Money {
    const { hour, before } = spentSince(at)
    let sum = 0n
    for (const { dimensions, cost } of this.#tables.hours.rows()) {
      if (dimensions[0] >= hour && keys.has(dimensions[3])) sum += cost
    }
    if (!before) return sum
    for (const { row, payment } of this.#tables.requests.rows()) {
      const isBefore = row.id >= before.first && row.id < before.last && row.at >= hour && row.at < at
      if (isBefore && keys.has(row.keyId)) sum -= payment.cost ?? 0n
    }
    return sum
  }
}
