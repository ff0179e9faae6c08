/** What every implementation of a port must do. Each suite takes a factory and runs on whatever that makes. */
import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import type { Hold, Principal, RequestRow, UsageGroup } from '../../src/core/ports.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { HOUR, identity, type MakeSubject, NOON, rowOf, type Subject } from './subject.ts'

export { countersContract, replyCacheContract, sharedBoundContract } from './contract-memory.ts'

const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex')

/** The message of the GatewayError that a promise rejects with; fails for anything else. */
export async function refusal(t: Test, promise: Promise<unknown>, status: number): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof GatewayError)) throw new Error(`expected a refusal, got ${error}`)
  t.equal(error.status, status)
  return error.message
}

export function accountStoreContract(t: Test, make: MakeSubject): void {
  t.test('an empty store gets a default organization on an open account, once', async t => {
    const { accounts, keys } = await make(t)
    const { key, ...record } = (await accounts.bootstrap())!
    t.equal(await accounts.bootstrap(), undefined)
    t.match(record, { name: 'default', project: 'default', organization: 'default', status: 'active', expiresAt: null })
    t.match(await keys.find(sha256(key)), { keyId: record.id, account: 'open', archived: false })
    t.same(await accounts.listKeys('default'), [record])
  })

  t.test('an organization that is there has its first key, wherever the start was cut short', async t => {
    const { accounts, organizations } = await make(t)
    const made = (await Promise.all([accounts.bootstrap(), accounts.bootstrap()])).filter(one => one !== undefined)
    t.equal(made.length, 1, 'either may be first')
    t.equal((await organizations.list()).length, 1)
    t.match(await accounts.listKeys(), [{ id: made[0]?.id }])
  })

  t.test('a key is shown when it is made and never again', async t => {
    const { accounts } = await make(t)
    await accounts.bootstrap()
    const { key, ...record } = await accounts.createKey({ project: 'default', name: 'app' })
    t.match(key, /^mgw_[A-Za-z0-9_-]{43}$/)
    t.same((await accounts.listKeys())[1], record)
    t.equal(record.createdAt, new Date(NOON).toISOString())
    t.ok(record.preview.startsWith('mgw_'))
  })

  t.test('a project goes by its id or its name, and a wrong one is answered with what exists', async t => {
    const subject = await make(t)
    const [one, two] = [await subject.organization('prepaid', 0n), await subject.organization('prepaid', 0n)]
    const { accounts } = subject
    const made = await accounts.createKey({ project: one.projectId, name: 'x' })
    t.same(
      (await accounts.listKeys(two.projectId)).map(({ id }) => id),
      [two.keyId],
    )
    t.ok((await accounts.listKeys(one.projectId)).some(({ id }) => id === made.id))
    const message = await refusal(t, accounts.createKey({ project: 'nope', name: 'x' }), 404)
    t.match(message, `There is no project "nope". There are: project-1 (id ${one.projectId}`)
    t.match(message, two.projectId)
    await refusal(t, accounts.listKeys('nope'), 404)
  })

  t.test('a revoked key is unknown at once, and revoking it again changes nothing', async t => {
    const { accounts, keys, clock } = await make(t)
    await accounts.bootstrap()
    const { id, key } = await accounts.createKey({ project: 'default', name: 'x' })
    t.equal((await keys.find(sha256(key)))?.keyId, id)
    const revoked = await accounts.revokeKey(id)
    t.equal(revoked.status, 'revoked')
    t.equal(await keys.find(sha256(key)), undefined)
    clock.now += HOUR
    t.same(await accounts.revokeKey(id), revoked)
    t.match(await refusal(t, accounts.revokeKey('nope'), 404), 'nope')
  })

  t.test('rolling ends a key and makes its successor, but does not revive a revoked one', async t => {
    const { accounts, keys } = await make(t)
    await accounts.bootstrap()
    const expiresAt = NOON + HOUR
    const old = await accounts.createKey({ project: 'default', name: 'x', expiresAt })
    const next = await accounts.rollKey(old.id)
    t.match(next, { name: 'x', project: 'default', status: 'active', expiresAt: old.expiresAt })
    t.not(next.key, old.key)
    t.equal(await keys.find(sha256(old.key)), undefined)
    t.match(await keys.find(sha256(next.key)), { keyId: next.id, expiresAt })
    t.match(await refusal(t, accounts.rollKey(old.id), 400), 'revoked')
    await refusal(t, accounts.rollKey('nope'), 404)
  })

  t.test('an expired key is listed as such and still found, so that the refusal can say why', async t => {
    const { accounts, keys, clock } = await make(t)
    await accounts.bootstrap()
    const { key } = await accounts.createKey({ project: 'default', name: 'x', expiresAt: NOON + 1000 })
    clock.now = NOON + 1000
    t.match(await accounts.listKeys('default'), [{ status: 'active' }, { status: 'expired' }])
    t.equal((await keys.find(sha256(key)))?.expiresAt, NOON + 1000)
  })
}

export function keyStoreContract(t: Test, make: MakeSubject): void {
  t.test('an unknown key is undefined until it exists', async t => {
    const { accounts, keys } = await make(t)
    await accounts.bootstrap()
    t.equal(await keys.find(sha256('mgw_nobody')), undefined)
    t.equal(await keys.find(sha256('mgw_nobody')), undefined)
    const { key, id } = await accounts.createKey({ project: 'default', name: 'x' })
    t.match(await keys.find(sha256(key)), { keyId: id, keyName: 'x', kind: 'key', cacheTtlMs: undefined })
  })

  t.test('what a key has spent is the sum of its charges', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    t.equal((await subject.keys.status(principal)).spent, 0n)
    for (const id of ['a', 'b'])
      await subject.ledger.settle(await granted(subject, principal, id, 0n), rowOf(principal, id))
    await subject.ledger.record(rowOf(principal, 'c', { cost: null }))
    t.equal((await subject.keys.status(principal)).spent, 600n)
  })
}

const ask = ({ ledger, clock }: Subject, principal: Principal, id: string, amount: bigint) =>
  ledger.hold({ id: `${id}:0`, request: identity(id), principal, amount, expiresAt: clock.now + HOUR })

export async function granted(subject: Subject, principal: Principal, id: string, amount: bigint): Promise<Hold> {
  const hold = await ask(subject, principal, id, amount)
  if ('exhausted' in hold) throw new Error(`the hold ${id} was refused`)
  return hold
}

export function ledgerContract(t: Test, make: MakeSubject): void {
  t.test('a hold is granted up to what is there', async t => {
    const subject = await make(t)
    for (const [account, credits, amount, expected] of [
      ['prepaid', 100n, 100n, true],
      ['prepaid', 100n, 101n, false],
      ['prepaid', 0n, 0n, true],
      ['prepaid', 0n, 1n, false],
      ['prepaid', -5n, 0n, true],
      ['open', 0n, 1_000_000_000_000n, true],
      ['open', -5n, 1n, true],
    ] as const) {
      const principal = await subject.organization(account, credits)
      const hold = await ask(subject, principal, principal.orgId, amount)
      t.equal('id' in hold, expected, `${amount} of ${credits} on an account that is ${account}`)
      t.equal((await subject.ledger.balance(principal.orgId)).held, expected ? amount : 0n)
    }
  })

  t.test('a settlement charges what it cost and gives the rest of the hold back', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 1000n)
    const hold = await granted(subject, principal, 'a', 700n)
    t.same(await subject.ledger.balance(principal.orgId), { balance: 1000n, held: 700n, used: 0n })
    await subject.ledger.settle(hold, rowOf(principal, 'a', { cost: 300n }))
    t.same(await subject.ledger.balance(principal.orgId), { balance: 700n, held: 0n, used: 300n })
    t.same(await subject.usage.check(), [])
  })

  t.test('CS-05 a second end of a hold does nothing, whatever it says', async t => {
    const subject = await make(t)
    const { ledger } = subject
    const principal = await subject.organization('prepaid', 1000n)
    const settled = await granted(subject, principal, 'a', 400n)
    await ledger.settle(settled, rowOf(principal, 'a', { cost: 300n }))
    await ledger.settle(settled, rowOf(principal, 'a', { cost: 999n }))
    await ledger.void(settled)
    const voided = await granted(subject, principal, 'c', 400n)
    await ledger.void(voided)
    await ledger.void(voided)
    t.same(await ledger.balance(principal.orgId), { balance: 700n, held: 0n, used: 300n })
    t.same(await subject.usage.check(), [])
  })

  t.test('CS-05 one request is charged once, even over two holds', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 1000n)
    await subject.ledger.settle(await granted(subject, principal, 'a', 100n), rowOf(principal, 'a', { cost: 100n }))
    const { ledger, clock } = subject
    const request = { id: 'a:1', request: identity('a'), principal, amount: 100n, expiresAt: clock.now + HOUR }
    const again = (await ledger.hold(request)) as Hold
    await refusal(t, ledger.settle(again, rowOf(principal, 'a', { cost: 100n })), 503)
    await ledger.void(again)
    t.same(await ledger.balance(principal.orgId), { balance: 900n, held: 0n, used: 100n })
    t.same(await subject.usage.check(), [])
  })

  t.test('a request whose row is there already is not charged behind it', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 1000n)
    const late = await granted(subject, principal, 'a', 100n)
    await subject.ledger.record(rowOf(principal, 'a', { outcome: 'error', cost: null }))
    await refusal(t, subject.ledger.settle(late, rowOf(principal, 'a', { cost: 100n })), 503)
    t.same(await subject.ledger.balance(principal.orgId), { balance: 1000n, held: 100n, used: 0n })
    t.same(await subject.usage.check(), [])
  })

  t.test('a cost above the hold is charged in full', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 100n)
    await subject.ledger.settle(await granted(subject, principal, 'a', 100n), rowOf(principal, 'a', { cost: 150n }))
    t.same(await subject.ledger.balance(principal.orgId), { balance: -50n, held: 0n, used: 150n })
  })

  t.test('a request that is free or of unknown price leaves a row and no charge', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 100n)
    for (const [id, cost] of [
      ['a', 0n],
      ['b', null],
    ] as const) {
      await subject.ledger.settle(await granted(subject, principal, id, 0n), rowOf(principal, id, { cost }))
    }
    t.same(await subject.ledger.balance(principal.orgId), { balance: 100n, held: 0n, used: 0n })
    t.match(await subject.usage.totals({ orgId: principal.orgId, from: NOON, to: NOON + HOUR }), {
      requests: 2,
      cost: 0n,
    })
  })

  t.test('a recorded row is kept once and costs nothing', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 100n)
    const row = rowOf(principal, 'a', { outcome: 'error', status: 502, errorCode: 'fetch_failed', cost: null })
    await subject.ledger.record(row)
    await subject.ledger.record(row)
    t.equal((await subject.ledger.balance(principal.orgId)).balance, 100n)
    t.match(await subject.usage.totals({ orgId: principal.orgId, from: NOON, to: NOON + HOUR }), {
      requests: 1,
      errors: 1,
    })
  })

  t.test('a request that fails does not fail those that are written with it', async t => {
    const subject = await make(t)
    const principal = await subject.organization('prepaid', 300n)
    const results = await Promise.allSettled([
      ask(subject, principal, 'a', 100n),
      ask(subject, principal, 'a', 100n),
      ask(subject, principal, 'b', -1n),
      ask(subject, principal, 'c', 2n ** 64n),
      subject.ledger.record(rowOf(principal, 'e', { cost: 0n })),
      ask(subject, principal, 'd', 100n),
    ])
    t.same(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected', 'rejected', 'fulfilled', 'fulfilled'],
    )
    t.equal((await subject.ledger.balance(principal.orgId)).held, 200n)
    t.same(await subject.usage.check(), [])
  })

  t.test('holds that are never settled become orphans a minute after they expired, once', async t => {
    const subject = await make(t)
    const { ledger, usage, clock } = subject
    const principal = await subject.organization('prepaid', 1000n)
    const lost = await granted(subject, principal, 'a', 400n)
    clock.now += HOUR + 60_000
    t.equal(await ledger.recover(), 0)
    clock.now += 1
    await granted(subject, principal, 'b', 100n)
    t.same((await Promise.all([ledger.recover(), ledger.recover()])).sort(), [0, 1])
    await ledger.void(lost)
    t.same(await ledger.balance(principal.orgId), { balance: 1000n, held: 100n, used: 0n })
    t.match(await usage.totals({ orgId: principal.orgId, from: NOON, to: NOON + HOUR }), {
      requests: 1,
      errors: 1,
      cost: 0n,
    })
    t.same(await usage.check(), [])
  })

  t.test('CS-05 a request that was taken for an orphan is charged what is missing when it ends, once', async t => {
    const subject = await make(t)
    const { ledger, usage, clock } = subject
    for (const [noted, cost, charged, funds] of [
      [undefined, 400n, 403n, 'credits'],
      [150n, 400n, 403n, 'credits'],
      [150n, 100n, 150n, 'credits'],
      [150n, 400n, 3n, 'byok'],
    ] as const) {
      const principal = await subject.organization('prepaid', 1000n)
      const { orgId } = principal
      const id = orgId
      const request = { id: `${id}:0`, request: identity(id), principal, amount: 500n, expiresAt: clock.now }
      const held = (await ledger.hold({ ...request, byok: funds === 'byok' })) as Hold
      if (noted) await ledger.checkpoint(held, { usage: { prompt: 100, completion: 7 }, cost: noted })
      clock.now += 60_001
      t.equal(await ledger.recover(), 1)
      const row = rowOf(principal, id, { at: clock.now - HOUR, cost, storage: 3n })
      await Promise.all([ledger.settle(held, row), ledger.settle(held, row)])
      await ledger.settle(held, { ...row, cost: 999n })
      await ledger.spool({ ...row, cost: 999n })
      t.equal(await ledger.recover(), 0)
      t.same(await ledger.balance(orgId), { balance: 1000n - charged, held: 0n, used: charged })
      const query = { orgId, from: NOON - HOUR, to: clock.now + HOUR }
      const one = { requests: 1, errors: 0, outputTokens: 20, cost, byokCost: funds === 'byok' ? cost : 0n }
      t.match(await usage.totals(query), one)
      t.match(await usage.breakdown(query, 'app'), [{ id: 'an-app', ...one }])
      t.equal((await usage.breakdown(query, 'app')).length, 1)
      t.equal((await subject.keys.status(principal)).spent, cost)
    }
    t.same(await usage.check(), [])
  })

  t.test('a request whose failed attempt was taken for an orphan is charged for the one that follows', async t => {
    const subject = await make(t)
    const { ledger, clock } = subject
    const principal = await subject.organization('prepaid', 1000n)
    await granted(subject, principal, 'a', 400n)
    clock.now += HOUR + 60_001
    t.equal(await ledger.recover(), 1)
    const request = { id: 'a:1', request: identity('a'), principal, amount: 100n, expiresAt: clock.now + HOUR }
    const second = (await ledger.hold(request)) as Hold
    await ledger.settle(second, rowOf(principal, 'a', { cost: 70n }))
    await refusal(t, ledger.settle((await ledger.hold(request)) as Hold, rowOf(principal, 'a')), 503)
    t.same(await ledger.balance(principal.orgId), { balance: 930n, held: 100n, used: 70n })
    t.same(await subject.usage.check(), [])
  })

  t.test('what was noted of a lost request is charged, whichever of its holds has it', async t => {
    const subject = await make(t)
    const { ledger, clock } = subject
    for (const [says, noted, lives] of [
      ['the last one', 1, HOUR],
      ['the first one', 0, HOUR],
      ['one that is lost later than the other', 1, 2 * HOUR],
    ] as const) {
      const principal = await subject.organization('prepaid', 1000n)
      const id = principal.orgId
      for (const attempt of [0, 1]) {
        const expiresAt = clock.now + (attempt === noted ? lives : HOUR)
        const request = { id: `${id}:${attempt}`, request: identity(id), principal, amount: 400n, expiresAt }
        const held = (await ledger.hold(request)) as Hold
        if (attempt === noted) await ledger.checkpoint(held, { usage: { prompt: 100, completion: 7 }, cost: 150n })
      }
      for (const at of [HOUR + 60_001, HOUR]) {
        clock.now += at
        await ledger.recover()
      }
      t.same(await ledger.balance(id), { balance: 850n, held: 0n, used: 150n }, says)
      const one = { requests: 1, errors: 1, outputTokens: 7, cost: 150n }
      t.match(await subject.usage.totals({ orgId: id, from: NOON - HOUR, to: clock.now }), one, says)
    }
    t.same(await subject.usage.check(), [])
  })

  t.test('a spooled row ends the hold that it names, whatever its request is called', async t => {
    const subject = await make(t)
    const { ledger, clock } = subject
    const principal = await subject.organization('prepaid', 1000n)
    const held = await granted(subject, principal, 'session:0', 400n)
    await ledger.checkpoint(held, { usage: { prompt: 100 }, cost: 390n })
    await ledger.spool(rowOf(principal, 'session:response', { cost: 300n }), held)
    await ledger.recover()
    t.same(await ledger.balance(principal.orgId), { balance: 700n, held: 0n, used: 300n })
    clock.now += HOUR + 60_001
    t.equal(await ledger.recover(), 0, 'nothing is charged twice')
    t.same(await subject.usage.check(), [])
  })

  t.test('an organization that is not there has nothing', async t => {
    const { ledger } = await make(t)
    t.same(await ledger.balance('nobody'), { balance: 0n, held: 0n, used: 0n })
  })
}

export function usageStoreContract(t: Test, make: MakeSubject): void {
  const fill = async (subject: Subject) => {
    const [a, b] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    const rows = [
      rowOf(a, '1', { at: NOON, cost: 5n }),
      rowOf(a, '2', { at: NOON + HOUR, cost: 70n, provider: 'other', source: null }),
      rowOf(a, '3', { at: NOON + 2 * HOUR, cached: true, cost: 0n, usage: {} }),
      rowOf(a, '4', { at: NOON, outcome: 'error', status: 502, cost: null, provider: null, usage: {} }),
      rowOf(a, '5', { at: NOON, outcome: 'aborted', status: 499, cost: 1n, usage: { prompt: 1.4 } }),
      rowOf(b, '6', { at: NOON, cost: 11n }),
    ]
    for (const row of rows) {
      const { ledger } = subject
      if (row.cost) await ledger.settle(await granted(subject, row.orgId === a.orgId ? a : b, row.id, 0n), row)
      else await ledger.record(row)
    }
    return { a, b }
  }

  t.test('totals count what is in scope', async t => {
    const subject = await make(t)
    const { a, b } = await fill(subject)
    const all = { from: NOON, to: NOON + 3 * HOUR }
    t.same(await subject.usage.totals({ ...all, orgId: a.orgId }), {
      requests: 5,
      errors: 1,
      cached: 1,
      inputTokens: 201,
      outputTokens: 40,
      cachedTokens: 120,
      reasoningTokens: 10,
      cost: 76n,
      creditsCost: 76n,
      byokCost: 0n,
      storageCost: 0n,
    })
    for (const [scope, requests] of [
      [{}, 6],
      [{ projectId: b.projectId }, 1],
      [{ keyId: a.keyId }, 5],
      [{ keyId: a.keyId, orgId: b.orgId }, 0],
      [{ to: NOON + HOUR }, 4],
      [{ from: NOON + HOUR }, 2],
      [{ from: NOON + 3 * HOUR, to: NOON + 9 * HOUR }, 0],
    ] as const) {
      t.equal((await subject.usage.totals({ ...all, ...scope })).requests, requests, JSON.stringify(scope))
    }
  })

  t.test('a breakdown names each group, the costliest first, and what was not recorded as unknown', async t => {
    const subject = await make(t)
    const { a, b } = await fill(subject)
    const query = { from: NOON, to: NOON + 3 * HOUR }
    const groups = async (by: 'provider' | 'model' | 'app' | 'api_key') =>
      (await subject.usage.breakdown(query, by)).map(({ id, requests, cost }) => [id, requests, cost])
    t.same(await groups('provider'), [
      ['other', 1, 70n],
      ['acme', 4, 17n],
      ['unknown', 1, 0n],
    ])
    t.same(await groups('model'), [['large', 6, 87n]])
    t.same(await groups('app'), [
      ['unknown', 1, 70n],
      ['an-app', 5, 17n],
    ])
    t.same(await groups('api_key'), [
      [a.keyId, 5, 76n],
      [b.keyId, 1, 11n],
    ])
    t.match(await subject.usage.breakdown(query, 'provider', 1, 1), [{ id: 'acme' }], 'in parts')
    t.same(await subject.usage.breakdown(query, 'provider', 9, 3), [])
  })

  t.test('own prices of one organization break no sums of others', async t => {
    const subject = await make(t)
    const [a, b] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    const most = 9_000_000_000_123_456_789n
    for (const [n, principal] of [a, b].entries()) {
      const hold = await granted(subject, principal, `${n}`, 0n)
      await subject.ledger.settle(hold, rowOf(principal, `${n}`, { at: NOON, cost: most }))
    }
    const query = { from: NOON, to: NOON + HOUR }
    t.equal((await subject.usage.totals(query)).cost, 2n * most)
    t.match(await subject.usage.breakdown(query, 'provider'), [{ id: 'acme', requests: 2, cost: 2n * most }])
  })

  t.test('sources and models that callers make up add a bounded number of sums to an hour of a key', async t => {
    const subject = await make(t)
    const [a, b] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
    const record = (principal: Principal, id: string, changes: Partial<RequestRow>) =>
      subject.ledger.record(rowOf(principal, id, { cost: 0n, ...changes }))
    const made = Array.from({ length: 1000 }, (_, n) => n)
    const sources = made.map(n => record(a, `s-${n}`, { model: null, source: `app-${n}`, outcome: 'error' }))
    await Promise.all(sources)
    await Promise.all(made.map(n => record(a, `m-${n}`, { model: `model-${n}` })))
    const groups = async (by: UsageGroup, { orgId }: Principal, from = NOON) => {
      const all = await subject.usage.breakdown({ orgId, from, to: from + HOUR }, by)
      return new Map(all.map(({ id, requests }) => [id, requests]))
    }
    const apps = await groups('app', a)
    t.equal(apps.size, 257)
    t.equal(apps.get('other'), 1000 - 256 + 1000)
    const models = await groups('model', a)
    t.equal(models.size, 257)
    t.match([models.get('unknown'), models.get('model-0'), models.get('*')], [1000, 1, 1000 - 255])

    await record(a, 'again', { model: null, source: 'app-0' })
    await record(a, 'later', { source: 'app-999', at: NOON + HOUR })
    await record(b, 'of-another', { source: 'app-999' })
    t.equal((await groups('app', a)).get('app-0'), 2, 'a source that has a sum keeps it')
    t.strictSame([...(await groups('app', a, NOON + HOUR))], [['app-999', 1]], 'each hour has sums of its own')
    t.strictSame([...(await groups('app', b))], [['app-999', 1]], 'and so has each key')
    t.same(await subject.usage.check(), [])
  })

  t.test(
    'tags and end users that callers make up fail no request, and add a bounded number of sums to a day',
    async t => {
      const subject = await make(t)
      const [a, b] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
      const names = Array.from({ length: 16 }, (_, n) => `tag-${n}`)
      for (let round = 0; round < 5; round++) {
        const record = (n: number) => {
          const tags = Object.fromEntries(names.map(name => [name, `${round}-${n}`]))
          return subject.ledger.record(rowOf(a, `${round}-${n}`, { cost: 0n, tags, endUser: `user-${round}-${n}` }))
        }
        await Promise.all(Array.from({ length: 256 }, (_, n) => record(n)))
      }
      await subject.ledger.record(rowOf(b, 'of-another', { cost: 0n, tags: { 'tag-0': '4-255' } }))
      await subject.ledger.record(rowOf(a, 'again', { cost: 0n, tags: { 'tag-0': '0-0' } }))
      const query = { orgId: a.orgId, from: NOON - 12 * HOUR, to: NOON + 12 * HOUR }
      for (const by of ['tag:tag-0', 'tag:tag-15', 'end_user'] as const) {
        const groups = await subject.usage.breakdown(query, by)
        const requests = groups.reduce((sum, group) => sum + group.requests, 0)
        t.equal(requests, 1281, by)
        t.ok(groups.length <= 1000 + 256 + 2, `${by}: ${groups.length} sums`)
        t.ok(groups.some(({ id }) => id === 'other'))
      }
      t.match(
        (await subject.usage.breakdown(query, 'tag:tag-0')).find(({ id }) => id === '0-0'),
        { requests: 2 },
      )
      const others = await subject.usage.breakdown({ ...query, orgId: b.orgId }, 'tag:tag-0')
      t.match(others, [{ id: '4-255', requests: 1 }], 'each organization has sums of its own')
    },
  )

  t.test('a request that was taken for an orphan leaves the sum that it was counted in', async t => {
    const subject = await make(t)
    const principal = await subject.organization('open', 0n)
    const record = (id: string, source: string) => subject.ledger.record(rowOf(principal, id, { source, cost: 0n }))
    const held = (await ask(subject, principal, 'a', 0n)) as Hold
    await Promise.all(Array.from({ length: 300 }, (_, n) => record(`${n}`, `app-${n}`)))
    subject.clock.now += HOUR + 60_001
    t.equal(await subject.ledger.recover(), 1)
    await subject.ledger.settle(held, rowOf(principal, 'a', { source: 'app-0', cost: 0n }))
    const query = { orgId: principal.orgId, from: NOON - HOUR, to: NOON + 2 * HOUR }
    t.match(await subject.usage.totals(query), { requests: 301, errors: 0 })
    const apps = new Map((await subject.usage.breakdown(query, 'app')).map(({ id, requests }) => [id, requests]))
    t.match([apps.get('app-0'), apps.get('other'), apps.get('unknown')], [2, 300 - 256, undefined])
    t.same(await subject.usage.check(), [])
  })

  t.test('books that agree have no differences', async t => {
    const subject = await make(t)
    const { a } = await fill(subject)
    await granted(subject, a, 'open', 20n)
    t.same(await subject.usage.check(), [])
  })
}
