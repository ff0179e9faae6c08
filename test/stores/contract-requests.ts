/** What the request log must be: every filter, page by page, newest first, and each row as it was kept. */
import type { Test } from 'tap'
import type { RequestFilter, RequestRow } from '../../src/core/ports.ts'
import { stampOf } from '../../src/lib/id.ts'
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
