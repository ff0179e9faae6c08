/** What amounts can be kept, and booked. */
import { errors } from '../../core/error.ts'
import { formatMoney, type Money } from '../../core/money.ts'
import type { LedgerEntry } from '../../core/ports.ts'

/** Half of what 64 bits hold: the rest is for what is added to it. */
export const MOST = 2n ** 62n

/** As much of an amount as can be kept. */
export const storable = (amount: Money): Money => (amount > MOST ? MOST : amount)

/** Throws a 400 when the balance of the organization of this name has no room for a payment. */
export function checkPayment(balance: Money, amount: Money, name: string): void {
  if (balance + amount > MOST) throw tooMuch(MOST - balance, 'added to', balance, name)
}

/** The same of a refund, whether or not the amount is free. */
export function checkRefund(balance: Money, amount: Money, name: string): void {
  if (balance - amount < -MOST) throw tooMuch(balance + MOST, 'taken from', balance, name)
}

/** A refund of more than what is free of a prepaid balance. */
export const notFree = (free: Money, amount: Money, name: string) =>
  errors.badRequest(`"${name}" has ${formatMoney(free)} USD that are free, less than ${formatMoney(amount)}.`)

const tooMuch = (most: Money, done: 'added to' | 'taken from', balance: Money, name: string) =>
  errors.badRequest(`At most ${formatMoney(most)} USD can be ${done} the ${formatMoney(balance)} USD of "${name}".`)

/**
 * A reference is booked once: whether `before`, the entry of it, is the booking that is reported again. Throws a 400 when
 * it stands for another one.
 */
export function isRepeated<T extends { readonly orgId: string } & Pick<LedgerEntry, 'amount'>>(
  before: T | undefined,
  { orgId, amount }: { readonly orgId: string; readonly amount: Money },
  kind: string,
  reference: string,
): before is T {
  if (!before) return false
  if (before.orgId === orgId && before.amount === amount) return true
  throw errors.badRequest(`The reference "${reference}" stands for another ${kind} already.`)
}
