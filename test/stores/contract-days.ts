/** Daily sums: queries of many days read these in place of the hourly ones, and the answers stay the same. */
import fc from 'fast-check'
import type { Test } from 'tap'
import type { Principal, RequestRow, UsageGroup, UsageQuery, UsageTotals } from '../../src/core/ports.ts'
import { granted } from './contract.ts'
import { HOUR, type MakeSubject, NOON, rowOf, type Subject } from './subject.ts'

const DAY = 24 * HOUR
const FIRST = NOON - 12 * HOUR
const DAYS = 4
const groups: readonly UsageGroup[] = [
  ...(['provider', 'model', 'app', 'api_key', 'project', 'member', 'day', 'end_user', 'tag:team'] as const),
]

const requests = (principals: readonly Principal[], prefix: string) =>
  fc.record({
    principal: fc.constantFrom(...principals),
    id: fc.uuid().map(id => `${prefix}-${id}`),
    at: fc.integer({ min: FIRST, max: FIRST + DAYS * DAY - 1 }),
    provider: fc.constantFrom('acme', 'other', null),
    model: fc.constantFrom('large', 'small', null),
    source: fc.constantFrom('app-1', 'app-2', null),
    outcome: fc.constantFrom('ok' as const, 'error' as const),
    cached: fc.boolean(),
    cost: fc.bigInt({ min: 0n, max: 5_000_000_000n }),
    storage: fc.bigInt({ min: 0n, max: 9n }),
    endUser: fc.constantFrom('ada', 'bob', undefined),
    tags: fc.constantFrom({ team: 'blue' }, { team: 'red' }, undefined),
  })
type Made = ReturnType<typeof requests> extends fc.Arbitrary<infer T> ? T : never

async function settled(subject: Subject, { principal, id, ...changes }: Made): Promise<RequestRow> {
  const row = rowOf(principal, id, changes)
  await subject.ledger.settle(await granted(subject, principal, id, 0n), row)
  return row
}

/** The value of a row that a group is made by. */
function groupOf(row: RequestRow, by: UsageGroup): string | null | undefined {
  if (by === 'provider') return row.provider
  if (by === 'model') return row.model
  if (by === 'app') return row.source
  if (by === 'api_key') return row.keyId
  if (by === 'project') return row.projectId
  if (by === 'day') return new Date(row.at).toISOString().slice(0, 10)
  if (by === 'end_user') return row.endUser
  return by === 'member' ? undefined : row.tags?.team
}

const isIn = (row: RequestRow, { orgId, projectId, keyId, from, to }: UsageQuery): boolean =>
  (orgId ?? row.orgId) === row.orgId &&
  (projectId ?? row.projectId) === row.projectId &&
  (keyId ?? row.keyId) === row.keyId &&
  row.at >= from &&
  row.at < to

function sumOf(rows: readonly RequestRow[]): UsageTotals {
  const sum = (of: (row: RequestRow) => number | undefined) => rows.reduce((all, row) => all + (of(row) ?? 0), 0)
  const cost = rows.reduce((all, row) => all + row.cost!, 0n)
  return {
    requests: rows.length,
    errors: sum(row => Number(row.outcome === 'error')),
    cached: sum(row => Number(row.cached)),
    inputTokens: sum(row => row.usage.prompt),
    outputTokens: sum(row => row.usage.completion),
    cachedTokens: sum(row => row.usage.input_cache_read),
    reasoningTokens: sum(row => row.usage.internal_reasoning),
    cost,
    creditsCost: cost,
    byokCost: 0n,
    storageCost: rows.reduce((all, row) => all + row.storage, 0n),
  }
}

/** Compares every answer of the store with sums of the rows. */
async function agrees(t: Test, { usage }: Subject, rows: readonly RequestRow[], [a, b]: Principal[], when: string) {
  const scopes = [{}, { orgId: a!.orgId }, { projectId: b!.projectId }, { keyId: a!.keyId }]
  const spans = [
    [FIRST, FIRST + DAYS * DAY],
    [FIRST + DAY, FIRST + 2 * DAY],
    [FIRST + 5 * HOUR, FIRST + 3 * DAY + 2 * HOUR],
    [FIRST - 1000 * DAY, FIRST + 1000 * DAY],
  ] as const
  for (const [from, to] of spans) {
    for (const scope of scopes) {
      const query = { ...scope, from, to }
      const found = rows.filter(row => isIn(row, query))
      t.strictSame(await usage.totals(query), sumOf(found), `${when}: totals`)
      for (const by of groups) {
        // Sums of labels are those of whole days.
        if (from % DAY !== 0 && (by === 'end_user' || by.startsWith('tag:'))) continue
        const ids = [...new Set(found.map(row => groupOf(row, by) ?? 'unknown'))]
        const wanted = ids.map(id => [id, sumOf(found.filter(row => (groupOf(row, by) ?? 'unknown') === id))] as const)
        const got = (await usage.breakdown(query, by)).map(({ id, name: _, ...sums }) => [id, sums] as const)
        t.strictSame(new Map([...got].sort()), new Map([...wanted].sort()), `${when}: by ${by}`)
        if (by === 'day')
          t.strictSame(
            got.map(([id]) => id),
            ids.sort(),
            `${when}: days in their order`,
          )
      }
    }
  }
}

export function usageDaysContract(t: Test, make: MakeSubject): void {
  t.test('random rows have the same sums before, while and after their days are added up', async t => {
    const subject = await make(t)
    const principals = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    const some = (prefix: string, count: number) =>
      fc.sample(requests(principals, prefix), { numRuns: count, seed: count })
    const rows = await Promise.all(some('first', 120).map(one => settled(subject, one)))
    const end = FIRST + DAYS * DAY
    subject.clock.now = end + 3 * HOUR
    await agrees(t, subject, rows, principals, 'before')
    t.equal(await subject.usage.sumDay(), end - DAY, 'the newest day comes first')
    await agrees(t, subject, rows, principals, 'while')
    while ((await subject.usage.sumDay()) !== undefined);
    await agrees(t, subject, rows, principals, 'after')
    t.same(await subject.usage.check(), [])

    rows.push(...(await Promise.all(some('late', 15).map(one => settled(subject, one)))))
    await agrees(t, subject, rows, principals, 'with late ones')
    while ((await subject.usage.sumDay()) !== undefined);
    await agrees(t, subject, rows, principals, 'after late ones')
    t.same(await subject.usage.check(), [])
  })

  t.test('a day of many sums is added up in parts, and anew where something comes late', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const record = (n: number) =>
      subject.ledger.record(
        rowOf(principal, `${n}`, {
          cost: 0n,
          source: `app-${n % 200}`,
          at: FIRST + (n % 6) * HOUR,
          model: `m-${n % 2}`,
        }),
      )
    await Promise.all(Array.from({ length: 1100 }, (_, n) => record(n)))
    subject.clock.now = FIRST + DAY + 3 * HOUR
    const query = { from: FIRST, to: FIRST + DAY }
    const counts = async () => {
      const by = await Promise.all(
        (['provider', 'model', 'app'] as const).map(by => subject.usage.breakdown(query, by)),
      )
      return by.map(groups => groups.reduce((sum, { requests }) => sum + requests, 0))
    }
    t.equal(await subject.usage.sumDay(), FIRST)
    await record(1100)
    t.strictSame(await counts(), [1101, 1101, 1101])
    let parts = 0
    while ((await subject.usage.sumDay()) !== undefined) parts++
    t.ok(parts > 1, `${parts} parts`)
    t.strictSame(await counts(), [1101, 1101, 1101])
    t.same(await subject.usage.check(), [])
  })

  t.test('an orphan that turns out to have ended changes the sums of its day', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const held = await granted(subject, principal, 'a', 0n)
    subject.clock.now += HOUR + 60_001
    t.equal(await subject.ledger.recover(), 1)
    subject.clock.now = FIRST + DAY + 3 * HOUR
    while ((await subject.usage.sumDay()) !== undefined);
    const query = { from: FIRST, to: FIRST + DAY }
    t.match(await subject.usage.totals(query), { requests: 1, errors: 1 })
    await subject.ledger.settle(held, rowOf(principal, 'a', { cost: 7n }))
    while ((await subject.usage.sumDay()) !== undefined);
    t.match(await subject.usage.totals(query), { requests: 1, errors: 0, cost: 7n })
    t.same(await subject.usage.check(), [])
  })

  t.test('a day whose sums are too large keeps its hourly ones, and holds up no other day', async t => {
    const subject = await make(t)
    const most = 9_000_000_000_123_456_789n
    for (const hour of [NOON, NOON + HOUR, NOON - DAY]) {
      const sums = `1, 0, 0, 0, 0, 0, 0, ${most}, 0, 0, 0, 0, 0`
      await subject.exec!(`INSERT INTO usage_hourly (hour, org_id, project_id, key_id, provider, model, source, requests, errors,
        cached, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, credits_cost, byok_cost, storage_cost, savings,
        updated_at) VALUES (${hour}, 'o', 'p', 'k', '', '', '', ${sums})`)
    }
    subject.clock.now = FIRST + DAY + 3 * HOUR
    await t.rejects(subject.usage.sumDay())
    t.equal(await subject.usage.sumDay(), FIRST - DAY)
    t.equal(await subject.usage.sumDay(), undefined)
    t.equal((await subject.usage.totals({ from: FIRST - DAY, to: FIRST + DAY })).cost, 3n * most)
    await t.rejects(subject.usage.sumDay(), 'it is tried again with the next round')
  })
}
