/** Payments, discounts, coding plans and the audit log in memory. */
import type {
  Actor,
  AuditStore,
  CreditInput,
  CreditStore,
  DiscountRecord,
  LedgerEntry,
  PlanState,
  PlanStore,
} from '../../../core/ports.ts'
import { shortId } from '../../../lib/id.ts'
import { checkPayment, checkRefund, isRepeated, notFree } from '../../rules/amounts.ts'
import type { Named } from '../../rules/names.ts'
import { noPlan, planSetting, planState } from '../../rules/plans.ts'
import type { Names } from './names.ts'
import type { DiscountRow, Entry } from './rows.ts'
import { entryId, iso, order, type Tables } from './tables.ts'

/** Payments, refunds and discounts; each is booked once for its reference. */
export function creditStore(tables: Tables, names: Names): CreditStore {
  const { entries, discounts, now } = tables
  const record = ({ orgId, kind, reference, amount, note, at }: Entry): LedgerEntry => ({
    ...{ reference, kind, amount, note, organization: tables.nameOf(orgId), at: iso(at) },
    account: kind === 'plan' ? 'plan' : 'credits',
    counter: kind === 'topup' || kind === 'refund' ? 'payments' : 'usage',
  })
  /** Books a reference once: a repetition returns the first entry. */
  const book = (kind: 'topup' | 'refund', input: CreditInput, actor: Actor, check: (org: Named) => void) =>
    tables.run(() => {
      const { amount, note = null, reference = shortId() } = input
      const org = names.findOrganization(input.organization)
      const before = entries.get(entryId({ kind, reference }))
      if (isRepeated(before, { orgId: org.id, amount }, kind, reference)) return record(before)
      const was = tables.balance(org.id)
      check(org)
      tables.addToBalance(org.id, { balance: amount })
      const entry: Entry = { orgId: org.id, reference, kind, amount, note, at: now() }
      tables.book(entry)
      const became = { ...tables.balance(org.id), amount, reference }
      const action = kind === 'topup' ? 'credits.add' : 'credits.refund'
      tables.note({ actor, action, organization: org.id, subject: org.id, was, became })
      return record(entry)
    })
  const shown = ({ orgId, provider, model, millionths }: DiscountRow): DiscountRecord => {
    const organization = orgId === '' ? null : tables.nameOf(orgId)
    return { organization, provider: provider || null, model: model || null, millionths }
  }
  return {
    add: (input, actor) =>
      book('topup', input, actor, ({ id, name }) => checkPayment(tables.balance(id).balance, input.amount, name)),
    refund(input, actor) {
      const { amount } = input
      return book('refund', { ...input, amount: -amount }, actor, ({ id, name }) => {
        const { balance, held } = tables.balance(id)
        checkRefund(balance, amount, name)
        const isOpen = tables.organizations.get(id)!.account === 'open'
        if (!isOpen && balance - held < amount) throw notFree(balance - held, amount, name)
      })
    },
    show: async organization => tables.balance(names.findOrganization(organization).id),
    async entries(organization, limit, offset = 0) {
      const { id } = names.findOrganization(organization)
      const newest = entries
        .filter(({ orgId, kind }) => orgId === id && kind !== 'charge' && kind !== 'plan')
        .sort((a, b) => b.at - a.at || order(a.reference, b.reference) || order(a.kind, b.kind))
      return part(newest, limit, offset).map(record)
    },
    discount: ({ organization, provider, model, millionths }, actor) =>
      tables.run(() => {
        const org = organization === null ? null : names.findOrganization(organization)
        const row = { orgId: org?.id ?? '', provider: provider ?? '', model: model ?? '', millionths }
        const id = JSON.stringify([row.orgId, row.provider, row.model])
        const before = discounts.get(id)
        if (millionths > 0) discounts.set(id, row)
        else discounts.delete(id)
        const became = shown(row)
        const note = { actor, action: 'credits.discount', organization: org?.id ?? null, subject: org?.id ?? '*' }
        tables.note({ ...note, was: before ? shown(before) : null, became })
        return became
      }),
    async discounts(organization, limit, offset = 0) {
      const id = organization === undefined ? undefined : names.findOrganization(organization).id
      const found = discounts
        .filter(({ orgId }) => id === undefined || orgId === '' || orgId === id)
        .sort((a, b) => order(a.orgId, b.orgId) || order(a.provider, b.provider) || order(a.model, b.model))
      return part(found, limit, offset).map(shown)
    },
  }
}

/** At most `limit` items from `offset` on; without a limit all of them. */
export const part = <T>(all: readonly T[], limit: number | undefined, offset: number): T[] =>
  all.slice(offset, limit === undefined ? undefined : offset + limit)

/** Plans as operators set them. */
export function planStore(tables: Tables, names: Names): PlanStore {
  const { plans, now } = tables
  const state = (orgId: string): PlanState | null => planState(plans.get(orgId), now()) ?? null
  const change = (
    organization: string,
    action: string,
    actor: Actor,
    work: (orgId: string, was: PlanState | null) => void,
  ) =>
    tables.run(() => {
      const { id } = names.findOrganization(organization)
      const was = state(id)
      work(id, was)
      const became = state(id)
      tables.note({ actor, action, organization: id, subject: id, was, became })
      return became
    })
  const unused = { used: 0n, weekAt: undefined, premiumUsed: 0n }
  return {
    set: (organization, changes, actor) =>
      change(organization, 'plans.set', actor, (orgId, was) => {
        const { plan, overflow } = planSetting(was, changes)
        const old = plans.get(orgId)
        if (was && old) plans.set(orgId, { ...old, plan, overflow })
        else if (plan) {
          // What requests hold of an ended plan is released to the next one.
          const { held = 0n, premiumHeld = 0n } = old ?? {}
          const begun = { plan, overflow, since: now(), monthAt: now() }
          plans.set(orgId, { orgId, ...begun, ...unused, held, premiumHeld })
        }
      }),
    show: async organization => state(names.findOrganization(organization).id),
    async resetWeek(organization, actor) {
      const became = await change(organization, 'plans.reset', actor, (orgId, was) => {
        if (!was) throw noPlan()
        plans.set(orgId, { ...plans.get(orgId)!, weekAt: undefined, premiumUsed: 0n })
      })
      return became!
    },
  }
}

/** The audit log, newest first. */
export const auditStore = (tables: Tables, names: Names): AuditStore => ({
  async list({ organization, limit, before = Number.MAX_SAFE_INTEGER }) {
    const wanted = organization === undefined ? undefined : names.findOrganization(organization).id
    return tables.audit
      .filter(({ id, orgId }) => id < before && (wanted === undefined || orgId === wanted))
      .reverse()
      .slice(0, limit)
      .map(({ orgId, ...entry }) => ({ ...entry, organization: orgId === null ? null : tables.nameOf(orgId) }))
  },
})
