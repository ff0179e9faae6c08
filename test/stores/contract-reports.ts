/** What reports of a project must be: the sums of `gatewayctl usage`, to the last nano-USD, in the caller's scope. */
import type { Test } from 'tap'
import type { Principal, ReportGroup, ReportSums, RequestRow } from '../../src/core/ports.ts'
import { random } from '../helpers/random.ts'
import { runs } from '../helpers/runs.ts'
import { granted } from './contract.ts'
import { HOUR, type MakeSubject, NOON, rowOf, type Subject } from './subject.ts'

const DAY = 24 * HOUR
const groups: readonly ReportGroup[] = ['provider', 'model', 'app', 'api_key']
const without = ({ savings: _savings, ...totals }: ReportSums) => totals

export function reportContract(t: Test, make: MakeSubject): void {
  t.test('reports of random histories equal the sums of usage, in every order and in parts', async t => {
    const subject = await make(t)
    const next = random(7)
    const pick = <T>(all: readonly T[]): T => all[Math.floor(next() * all.length)]!
    for (let round = 0; round < runs(10); round++) {
      const principal = await subject.organization('open', 0n)
      const history = Array.from({ length: 60 }, (_, count) =>
        record(subject, principal, {
          id: `${round}-${count}`,
          at: NOON + Math.floor(next() * 3 * DAY),
          provider: pick(['acme', 'other', null]),
          model: pick(['large', 'small', null]),
          source: pick(['an-app', 'opencode', 'open-code', null]),
          cost: pick([null, 0n, 1n, BigInt(Math.floor(next() * 1e12))]),
          outcome: pick(['ok', 'error', 'aborted']),
          storage: BigInt(Math.floor(next() * 100)),
        }),
      )
      await Promise.all(history)
      const { projectId } = principal
      const query = { projectId, from: NOON, to: NOON + 4 * DAY }
      const expected = await subject.usage.totals(query)
      for (const unit of [HOUR, DAY]) {
        const series = await subject.reports.series(query, unit)
        t.same(
          series.map(({ at }) => at % unit),
          series.map(() => 0),
        )
        t.same(
          series.map(({ at }) => at),
          series.map(({ at }) => at).sort((a, b) => a - b),
        )
        t.same(sumOf(series), sumOf([expected]))
      }
      for (const by of groups) {
        const known = await subject.usage.breakdown(query, by)
        for (const order of ['requests', 'cost', 'tokens'] as const) {
          const all = await subject.reports.ranking(query, by, order, 100, 0)
          t.same(sumOf(all), sumOf([expected]))
          const parts = [0, 1, 2, 3, 4].map(offset => subject.reports.ranking(query, by, order, 1, offset))
          t.same((await Promise.all(parts)).flat(), all.slice(0, 5))
          if (by !== 'app') {
            const byId = new Map(known.map(({ id, name: _, ...totals }) => [id, totals]))
            for (const { id, ...totals } of all) t.same(without(totals), byId.get(id))
          }
        }
      }
      const apps = await subject.reports.ranking(query, 'app', 'requests', 100, 0)
      t.same(
        apps.map(({ id }) => id).filter(id => id === 'open-code'),
        [],
        'an alias counts as its app',
      )
    }
  })

  t.test('a report holds the keys that it is asked for, and no other project', async t => {
    const subject = await make(t)
    const [a, b] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    for (const [id, principal] of [
      ['1', a],
      ['2', a],
      ['3', b],
    ] as const) {
      await record(subject, principal, { id, at: NOON, cost: 10n })
    }
    const query = { projectId: a.projectId, from: NOON, to: NOON + DAY }
    const requests = async (keyIds?: string[]) =>
      (await subject.reports.series({ ...query, keyIds }, DAY)).map(({ requests }) => requests)
    t.same(await requests(), [2])
    t.same(await requests([a.keyId]), [2])
    t.same(await requests([b.keyId]), [])
    t.same(await requests([]), [])
    t.same(await subject.reports.keys(a.projectId), [{ id: a.keyId, name: 'a key' }])
    t.same(await subject.reports.keys(a.projectId, 'nobody'), [])
  })

  t.test('a report contains the time of its last addition, and what discounts saved', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const query = { projectId: principal.projectId, from: NOON, to: NOON + DAY }
    t.equal(await subject.reports.updatedAt(query), undefined)
    await record(subject, principal, { id: 'a', at: NOON, cost: 300n, discount: 250_000 })
    subject.clock.now = NOON + 5000
    await record(subject, principal, { id: 'b', at: NOON + HOUR, cost: 300n })
    t.equal(await subject.reports.updatedAt(query), NOON + 5000)
    t.equal(await subject.reports.updatedAt({ ...query, to: NOON + HOUR }), NOON)
    t.match(await subject.reports.series(query, DAY), [{ savings: 100n, cost: 600n }])
  })

  t.test('a caller has the name of its project, and the address of its member', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    t.match(await subject.reports.caller(principal), { project: /^project-/, email: null })
    const { id } = await subject.members.add(
      { organization: principal.orgId, email: 'ada@example.com', role: 'developer' },
      'test',
    )
    const caller = { projectId: principal.projectId, member: { id, role: 'developer' as const } }
    t.match(await subject.reports.caller(caller), { email: 'ada@example.com' })
    const { id: key } = await subject.accounts.createKey(
      { project: principal.projectId, name: 'hers', createdBy: 'ada@example.com' },
      'test',
    )
    await subject.accounts.revokeKey(key, 'test')
    t.same(await subject.reports.keys(principal.projectId, id), [{ id: key, name: 'hers' }], 'ended ones too')
  })
}

/** Settles one request. */
async function record(subject: Subject, principal: Principal, changes: Partial<RequestRow> & { id: string }) {
  const hold = await granted(subject, principal, changes.id, 0n)
  await subject.ledger.settle(hold, rowOf(principal, changes.id, changes))
}

const sumOf = (all: readonly Omit<ReportSums, 'savings'>[]) => ({
  requests: all.reduce((sum, { requests }) => sum + requests, 0),
  errors: all.reduce((sum, { errors }) => sum + errors, 0),
  tokens: all.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
  cost: all.reduce((sum, { cost }) => sum + cost, 0n),
  creditsCost: all.reduce((sum, { creditsCost }) => sum + creditsCost, 0n),
  storageCost: all.reduce((sum, { storageCost }) => sum + storageCost, 0n),
})
