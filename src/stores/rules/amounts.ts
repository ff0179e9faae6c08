/** Ranges of amounts that can be stored and booked. */

import { formatMoney, type Money } from '../../core/money.ts'
import type { LedgerEntry } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'

/** Half of the 64-bit range: the rest is for sums. */
export const MAX_AMOUNT = 2n ** 62n

/** The amount, capped to the storable range. */
export const storable = (amount: Money): Money => (amount > MAX_AMOUNT ? MAX_AMOUNT : amount)

/** Throws a 400 when a payment would exceed the storable balance of the organization `name`. */
export function checkPayment(balance: Money, amount: Money, name: string): void {
  if (balance + amount > MAX_AMOUNT) throw tooMuch(MAX_AMOUNT - balance, 'added to', balance, name)
}

/** Checks a refund, whether or not the amount is free. */
export function checkRefund(balance: Money, amount: Money, name: string): void {
  if (balance - amount < -MAX_AMOUNT) throw tooMuch(balance + MAX_AMOUNT, 'taken from', balance, name)
}

/** The error for a refund above the free part of a prepaid balance. */
export const notFree = (free: Money, amount: Money, name: string) =>
  errors.badRequest(`"${name}" has ${formatMoney(free)} USD free, less than ${formatMoney(amount)}.`)

const tooMuch = (most: Money, done: 'added to' | 'taken from', balance: Money, name: string) =>
  errors.badRequest(`At most ${formatMoney(most)} USD can be ${done} the ${formatMoney(balance)} USD of "${name}".`)

/**
 * Whether `before`, the entry of a reference, is the same booking repeated. Throws a 400 when the reference belongs to
 * another booking.
 */
export function isRepeated<T extends { readonly orgId: string } & Pick<LedgerEntry, 'amount'>>(
  before: T | undefined,
  { orgId, amount }: { readonly orgId: string; readonly amount: Money },
  kind: string,
  reference: string,
): before is T {
  if (!before) return false
  if (before.orgId === orgId && before.amount === amount) return true
  throw errors.badRequest(`The reference "${reference}" already belongs to another ${kind}.`)
}
