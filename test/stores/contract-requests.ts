/** What the request log must be: every filter, page by page, newest first, and each row as it was kept. */
import type { Test } from 'tap'
import type { Principal, RequestFilter, RequestRow, UsageGroup } from '../../src/core/ports.ts'
import { stampOf } from '../../src/lib/id.ts'
import { MAX_KEYS_OF_DAY, MAX_VALUES_OF_DAY } from '../../src/stores/rules/labels.ts'
import { HOUR, hold, type MakeSubject, NOON, rowOf } from './subject.ts'

/** An id of a request that arrived at `at`. */
export const idAt = (at: number, name: string): string => `${stampOf(at)}${name}`

const detail = {
  held: '0.5',
  attempts: [
    {
      ...{ provider: 'down', model: 'large', status: 503, error_type: 'upstream_error', started_ms: 1 },
      ...{ connect_ms: null, ttft_ms: null, duration_ms: 20, credential: 'f1e2', reason: 'upstream_error' },
    },
  ],
}

export function requestLogContract(t: Test, make: MakeSubject): void {
  t.test('a row is read as it was kept, and an unknown one is undefined', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const usage = { prompt: 3, completion: 4, image: 1 }
    const row = rowOf(principal, idAt(NOON, 'a'), { durationMs: 9, usage, detail, errorCode: 'odd', cost: null })
    await subject.ledger.record(row)
    t.strictSame(await subject.requests.get(row.id), row)
    t.equal(await subject.requests.get('nobody'), undefined)
  })

  t.test('rows are found by their end user and by a tag, page by page', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const odd = { 'a=b': 'c', __proto: 'x', 'ключ "1"': 'a\\b, 🦊' }
    const labels: readonly (readonly [name: string, labels: Pick<RequestRow, 'endUser' | 'tags'>])[] = [
      ['a', { endUser: 'ann' }],
      ['b', { tags: { team: 'blue' } }],
      ['c', { endUser: 'ann', tags: { team: 'blue', feature: 'chat' } }],
      ['d', {}],
      ['e', { endUser: 'bob', tags: { team: 'blue' } }],
      ['f', { endUser: 'Zoë', tags: odd }],
      ['g', { endUser: 'ann', tags: { team: 'red' } }],
    ]
    for (const [name, given] of labels) {
      const row = rowOf(principal, idAt(NOON, name), { ...given, durationMs: 9, cost: 0n })
      await subject.ledger.record(row)
      t.strictSame(await subject.requests.get(row.id), row)
    }
    const cases: readonly (readonly [RequestFilter, string])[] = [
      [{ endUser: 'ann' }, 'gca'],
      [{ endUser: 'nobody' }, ''],
      [{ endUser: 'an' }, ''],
      [{ endUser: 'Zoë' }, 'f'],
      [{ tag: 'team=blue' }, 'ecb'],
      [{ tag: 'team=blu' }, ''],
      [{ tag: 'a=b=c' }, 'f'],
      [{ tag: 'ключ "1"=a\\b, 🦊' }, 'f'],
      [{ endUser: 'ann', tag: 'team=blue' }, 'c'],
      [{ endUser: 'ann', status: 500 }, ''],
      [{ endUser: 'ann', projectId: principal.projectId, since: NOON }, 'gca'],
    ]
    for (const [filter, expected] of cases) {
      let found = ''
      for (let next: string | undefined = '~'; next; ) {
        const page = await subject.requests.page(filter, 2, next)
        found += page.rows.map(({ id }) => id.at(-1)).join('')
        next = page.next
      }
      t.equal(found, expected, JSON.stringify(filter))
    }
  })

  t.test('usage is summed by end user and by tag, and the rest is unknown', async t => {
    const subject = await make(t)
    const [one, two] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    const settle = async (who: Principal, name: string, changes: Partial<RequestRow>) => {
      const row = rowOf(who, idAt(NOON, name), { at: NOON, ...changes })
      const held = await hold(subject, who, row.id, 1000n)
      if ('exhausted' in held) throw new Error('an open account holds anything')
      await subject.ledger.settle(held, row)
    }
    await settle(one, 'a', { endUser: 'ann', tags: { team: 'blue' }, cost: 100n })
    await settle(one, 'b', { endUser: 'ann', tags: { team: 'red' }, cost: 10n, outcome: 'error' })
    await settle(one, 'c', { endUser: 'bob', cost: 1000n })
    await settle(one, 'd', { cost: 1n })
    await settle(one, 'e', { tags: { team: 'blue' }, cost: 7n, at: NOON - 24 * HOUR })
    await settle(two, 'f', { endUser: 'ann', tags: { team: 'blue' }, cost: 500n })
    await subject.ledger.record(rowOf(one, idAt(NOON, 'g'), { endUser: 'ann', cached: true, cost: 0n }))
    const day = { from: NOON - 12 * HOUR, to: NOON + 12 * HOUR }
    const groups = async (by: UsageGroup, query: object = {}) =>
      (await subject.usage.breakdown({ ...day, orgId: one.orgId, ...query }, by)).map(
        ({ id, requests, errors, cached, cost }) => [id, requests, errors, cached, Number(cost)],
      )
    t.strictSame(await groups('end_user'), [
      ['bob', 1, 0, 0, 1000],
      ['ann', 3, 1, 1, 110],
      ['unknown', 1, 0, 0, 1],
    ])
    t.strictSame(await groups('tag:team'), [
      ['unknown', 3, 0, 1, 1001],
      ['blue', 1, 0, 0, 100],
      ['red', 1, 1, 0, 10],
    ])
    t.strictSame(await groups('tag:team', { from: NOON - 36 * HOUR, keyId: one.keyId }), [
      ['unknown', 3, 0, 1, 1001],
      ['blue', 2, 0, 0, 107],
      ['red', 1, 1, 0, 10],
    ])
    t.strictSame(await groups('end_user', { orgId: undefined }), [
      ['bob', 1, 0, 0, 1000],
      ['ann', 4, 1, 1, 610],
      ['unknown', 1, 0, 0, 1],
    ])
    t.strictSame(await groups('tag:none', { orgId: two.orgId }), [['unknown', 1, 0, 0, 500]])
    t.strictSame(await groups('end_user', { projectId: two.projectId, orgId: undefined }), [['ann', 1, 0, 0, 500]])
    const all = await subject.usage.breakdown({ ...day, orgId: one.orgId }, 'end_user')
    const totals = await subject.usage.totals({ ...day, orgId: one.orgId })
    for (const name of ['inputTokens', 'outputTokens', 'cachedTokens', 'reasoningTokens', 'creditsCost'] as const) {
      t.equal(
        all.reduce((sum, group) => sum + Number(group[name]), 0),
        Number(totals[name]),
        name,
      )
    }
    t.same(await subject.usage.check(), [])
  })

  t.test('a request that was taken for an orphan is counted once by its labels', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const row = rowOf(principal, idAt(NOON, 'a'), { endUser: 'ann', tags: { team: 'blue' }, cost: 5n, at: NOON })
    const held = await hold(subject, principal, row.id, 1000n)
    if ('exhausted' in held) throw new Error('an open account holds anything')
    subject.clock.now += 2 * HOUR
    t.equal(await subject.ledger.recover(), 1)
    await subject.ledger.settle(held, row)
    const query = { from: NOON - 12 * HOUR, to: NOON + 12 * HOUR, orgId: principal.orgId }
    t.match(await subject.usage.breakdown(query, 'end_user'), [{ id: 'ann', requests: 1, cost: 5n }])
    t.match(await subject.usage.breakdown(query, 'tag:team'), [{ id: 'blue', requests: 1, cost: 5n }])
    t.match((await subject.requests.page({ endUser: 'ann' }, 9)).rows, [{ id: row.id }])
    t.same(await subject.usage.check(), [])
  })

  t.test('end users and tags that callers make up add a bounded number of sums to a day', async t => {
    const subject = await make(t)
    const [one, two] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    const record = (who: Principal, name: string, labels: Pick<RequestRow, 'endUser' | 'tags'>) =>
      subject.ledger.record(rowOf(who, idAt(NOON, name), { ...labels, cost: 0n }))
    const made = Array.from({ length: MAX_VALUES_OF_DAY + 200 }, (_, n) => n)
    for (const n of made) await record(one, `u${n}`, { endUser: `user-${n}` })
    for (const n of made.slice(0, MAX_KEYS_OF_DAY + 9)) await record(one, `k${n}`, { tags: { [`key-${n}`]: 'v' } })
    await record(one, 'again', { endUser: 'user-0' })
    await record(two, 'other', { endUser: 'user-1199' })
    const query = { from: NOON - 12 * HOUR, to: NOON + 12 * HOUR }
    const of = async (who: Principal, by: UsageGroup) => {
      const groups = await subject.usage.breakdown({ ...query, orgId: who.orgId }, by)
      return new Map(groups.map(({ id, requests }) => [id, requests]))
    }
    const users = await of(one, 'end_user')
    t.equal(users.get('other'), 200)
    t.equal(users.get('user-0'), 2, 'an end user that has a sum keeps it')
    t.equal(users.size, MAX_VALUES_OF_DAY + 2)
    t.strictSame([...(await of(two, 'end_user'))], [['user-1199', 1]], 'each organization has sums of its own')
    t.equal((await of(one, 'tag:key-0')).get('v'), 1)
    t.equal((await of(one, `tag:key-${MAX_KEYS_OF_DAY + 8}`)).get('v'), undefined, 'further keys have no sums')
    const { rows } = await subject.requests.page({ tag: `key-${MAX_KEYS_OF_DAY + 8}=v` }, 9)
    t.equal(rows.length, 1, 'but rows')
  })

  t.test('each filter selects its rows, newest first', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const other = await subject.organization('open', 0n)
    const add = async (name: string, minute: number, changes: Partial<RequestRow>, who = principal) => {
      const at = NOON + minute * 60_000
      const row = rowOf(who, idAt(at, name), { at, ...changes })
      const held = await hold(subject, who, row.id, 1000n)
      if ('exhausted' in held) throw new Error('an open account holds anything')
      await subject.ledger.settle(held, row)
    }
    await add('a', 0, { model: null, requestedModel: 'odd', provider: null, status: 404, errorCode: 'model_not_found' })
    await add('b', 1, { durationMs: 5000, cost: 10n })
    await add('c', 2, { provider: 'other', cost: 900n, durationMs: 3 * HOUR })
    await add('d', 3, {}, other)
    const named = async (filter: RequestFilter) =>
      (await subject.requests.page(filter, 10)).rows.map(({ id }) => id.at(-1)).join('')
    const cases: readonly (readonly [RequestFilter, string])[] = [
      [{}, 'dcba'],
      [{ orgId: other.orgId }, 'd'],
      [{ projectId: principal.projectId }, 'cba'],
      [{ keyId: other.keyId }, 'd'],
      [{ model: 'odd' }, 'a'],
      [{ model: 'large' }, 'dcb'],
      [{ provider: 'other' }, 'c'],
      [{ status: 404 }, 'a'],
      [{ errorCode: 'model_not_found' }, 'a'],
      [{ slower: 4999 }, 'cb'],
      [{ slower: 5000 }, 'c'],
      [{ dearer: 300n }, 'c'],
      [{ since: NOON + 120_000 }, 'dc'],
      [{ endedSince: NOON + HOUR }, 'c'],
      [{ since: NOON + 60_000, keyId: principal.keyId, slower: 1000 }, 'cb'],
    ]
    for (const [filter, expected] of cases) t.equal(await named(filter), expected, Object.keys(filter).join())
  })

  t.test('pages follow one another without a gap or a repetition', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const ids = Array.from({ length: 7 }, (_, n) => idAt(NOON, `${n}`))
    await Promise.all(ids.map(id => subject.ledger.record(rowOf(principal, id))))
    const found: string[] = []
    for (let next: string | undefined = '~'; next; ) {
      const page = await subject.requests.page({}, 3, next)
      found.push(...page.rows.map(({ id }) => id))
      next = page.next
    }
    t.strictSame(found, ids.toReversed())
  })
}
