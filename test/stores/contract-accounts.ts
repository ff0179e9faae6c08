/** What every implementation must do about organizations, projects, members, payments and the audit log. */
import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import type { Page, Principal } from '../../src/core/ports.ts'
import { refusal } from './contract.ts'
import { HOUR, hold, type MakeSubject, NOON, rowOf } from './subject.ts'

const ADA = 'ada'

export function organizationContract(t: Test, make: MakeSubject): void {
  t.test('an organization is prepaid and has nothing, unless it is said otherwise', async t => {
    const { organizations, ledger } = await make(t)
    const made = await organizations.create({ name: 'acme' }, ADA)
    const createdAt = new Date(NOON).toISOString()
    t.match(made, { name: 'acme', account: 'prepaid', retains: false, plan: null, createdAt })
    t.same(await ledger.balance(made.id), { balance: 0n, held: 0n, used: 0n })
    t.match(await organizations.create({ name: 'open', account: 'open', retains: true }, ADA), { retains: true })
    t.match(await organizations.list(), [{ name: 'acme' }, { name: 'open', account: 'open' }])
    t.match(await organizations.update('acme', { name: 'ACME' }, ADA), {
      id: made.id,
      name: 'ACME',
      account: 'prepaid',
    })
    t.match(await organizations.update(made.id, { account: 'open' }, ADA), { name: 'ACME', account: 'open' })
    t.match(await refusal(t, organizations.create({ name: 'open' }, ADA), 400), 'An organization "open" already exists')
    await refusal(t, organizations.create({ name: made.id }, ADA), 400)
    await refusal(t, organizations.update('ACME', { name: 'open' }, ADA), 400)
    t.match(await refusal(t, organizations.update('nope', {}, ADA), 404), /There are: ACME \(id /)
  })

  t.test("the operator's own requests have one organization, which the first of them makes", async t => {
    const subject = await make(t)
    const { issuerKeys, keys, organizations, audit } = subject
    t.same(await organizations.list(), [])
    const hashes = await Promise.all([1, 2, 3].map(() => issuerKeys.keyOfOperator()))
    t.equal(new Set([...hashes, await issuerKeys.keyOfOperator()]).size, 1)
    const principal = (await keys.find(hashes[0]!)) as Principal
    t.match(principal, { orgId: 'gateway-operator', account: 'open', mode: 'credits', keyName: 'mirrors' })
    t.match(await organizations.list(), [{ id: 'gateway-operator', name: 'gateway-operator', account: 'open' }])
    t.match(await audit.list({ limit: 2 }), [{ action: 'keys.create' }, { action: 'orgs.create', actor: 'gateway' }])
    t.match(await hold(subject, principal, 'mirrored', 5n), { amount: 5n }, 'its balance has no bound')
  })

  t.test('weight and limits of a provider key are kept, changed and removed', async t => {
    const { organizations, policies } = await make(t)
    const { id: orgId } = await organizations.create({ name: 'a' }, ADA)
    const key = { organization: 'a', provider: 'p', label: 'l', secret: 's', fingerprint: 'f' }
    const plain = await policies.providerKeys.add(key, ADA)
    t.notOk('weight' in plain || 'rpm' in plain)
    const { id } = await policies.providerKeys.add({ ...key, load: { weight: 2.5, rpm: 10 } }, ADA)
    const loads = async () => (await policies.facts(orgId)).keys.map(({ load }) => load)
    t.same(await loads(), [{}, { weight: 2.5, rpm: 10 }])
    t.match(await policies.providerKeys.update(id, undefined, { load: { weight: null, tpm: 9 } }, ADA), {
      weight: undefined,
      rpm: 10,
      tpm: 9,
    })
    t.match(await policies.providerKeys.update(id, undefined, { label: 'm' }, ADA), { label: 'm', rpm: 10, tpm: 9 })
    t.same(await loads(), [{}, { rpm: 10, tpm: 9 }])
    await policies.providerKeys.update(id, undefined, { load: { rpm: null, tpm: null } }, ADA)
    t.same(await loads(), [{}, {}])
  })

  t.test('projects are named apart within their organization, and found by either name', async t => {
    const { organizations, projects, accounts } = await make(t)
    for (const name of ['a', 'b']) await organizations.create({ name }, ADA)
    const web = await projects.create({ organization: 'a', name: 'web' }, ADA)
    t.match(web, { organization: 'a', mode: 'credits', cacheTtlMs: null, passesParameters: false, status: 'active' })
    await projects.create({ organization: 'b', name: 'web', mode: 'hybrid', cacheTtlMs: 5000 }, ADA)
    await refusal(t, projects.create({ organization: 'a', name: 'web' }, ADA), 400)
    t.match(await refusal(t, projects.update('web', {}, ADA), 404), /"web" names 2 projects/)
    t.match(await projects.update('b/web', { mode: 'api-keys', cacheTtlMs: null }, ADA), {
      mode: 'api-keys',
      cacheTtlMs: null,
    })
    t.match(await projects.list('a'), [{ id: web.id }])
    t.equal((await projects.list()).length, 2)
    t.match(await accounts.createKey({ project: 'a/web', name: 'x' }), { project: 'web', organization: 'a' })
  })

  t.test('what a project is changed to holds for the next request of its keys', async t => {
    const subject = await make(t)
    const { organizations, projects, accounts, plans } = subject
    await organizations.create({ name: 'a' }, ADA)
    const { id } = await projects.create({ organization: 'a', name: 'web', cacheTtlMs: 5000 }, ADA)
    const { key } = await accounts.createKey({ project: id, name: 'x' })
    const principal = async () => (await subject.keys.find(sha256(key))) as Principal
    t.match(await principal(), { orgName: 'a', mode: 'credits', cacheTtlMs: 5000, archived: false, since: NOON })
    t.match(await principal(), { passesParameters: false, cachesPrompts: false, responsesMs: undefined })
    await projects.update(
      id,
      {
        ...{ archived: true, mode: 'hybrid', cacheTtlMs: 9000 },
        ...{ passesParameters: true, cachesPrompts: true, responsesMs: 7000 },
      },
      ADA,
    )
    t.match(await principal(), {
      mode: 'hybrid',
      cacheTtlMs: 9000,
      passesParameters: true,
      cachesPrompts: true,
      responsesMs: 7000,
      archived: true,
    })
    const archived = await projects.update(id, { name: 'site' }, ADA)
    t.match(archived, { name: 'site', status: 'archived', passesParameters: true, responsesMs: 7000 })
    t.match(await projects.update(id, { archived: false }, ADA), { status: 'active' })
    await plans.set('a', { plan: 'pro', overflow: true }, ADA)
    t.match(await principal(), { archived: false, cacheTtlMs: undefined, plan: { plan: 'pro', overflow: true } })
    t.match(await organizations.list(), [{ plan: 'pro' }])
  })
}

export function memberContract(t: Test, make: MakeSubject): void {
  const start = async (t: Test) => {
    const subject = await make(t)
    await subject.organizations.create({ name: 'a' }, ADA)
    for (const name of ['web', 'app']) await subject.projects.create({ organization: 'a', name }, ADA)
    await subject.members.add({ organization: 'a', email: 'boss@a.example', role: 'owner' }, ADA)
    return subject
  }

  t.test('members have a role, and access to all projects or to some', async t => {
    const { members } = await start(t)
    const dev = await members.add(
      { organization: 'a', email: 'dev@a.example', role: 'developer', projects: ['web'] },
      ADA,
    )
    t.match(dev, { organization: 'a', role: 'developer', projects: ['web'], limits: [] })
    t.match(await members.list('a'), [{ email: 'boss@a.example', projects: null }, { id: dev.id }])
    t.match(await members.update('a', dev.id, { projects: ['app', 'web'] }, ADA), { projects: ['web', 'app'] })
    t.match(await members.update('a', 'dev@a.example', { role: 'admin', projects: null }, ADA), {
      role: 'admin',
      projects: null,
    })
    const again = members.add({ organization: 'a', email: 'dev@a.example', role: 'admin' }, ADA)
    t.match(await refusal(t, again, 400), 'is already a member of "a"')
    await refusal(t, members.update('a', 'nobody@a.example', {}, ADA), 404)
    await refusal(t, members.update('a', dev.id, { projects: ['nope'] }, ADA), 404)
  })

  t.test('a project that a member is given goes by its id or its name, whatever it looks like', async t => {
    const { members, organizations, projects } = await start(t)
    await organizations.create({ name: 'b' }, ADA)
    await projects.create({ organization: 'b', name: 'team/api' }, ADA)
    const { id } = await projects.create({ organization: 'a', name: 'team/api' }, ADA)
    for (const wanted of [id, 'team/api', 'a/team/api']) {
      await members.update('a', 'boss@a.example', { projects: ['web'] }, ADA)
      t.match(await members.update('a', 'boss@a.example', { projects: [wanted] }, ADA), { projects: ['team/api'] })
    }
  })

  t.test('a project of another organization is none that a member can be given', async t => {
    const { members, organizations, projects } = await start(t)
    await organizations.create({ name: 'b' }, ADA)
    const { id } = await projects.create({ organization: 'b', name: 'secret' }, ADA)
    for (const wanted of [id, 'secret', 'b/secret']) {
      const given = members.update('a', 'boss@a.example', { projects: [wanted] }, ADA)
      const error = await given.then(
        () => undefined,
        (thrown: { status: number }) => thrown,
      )
      t.ok(error && [400, 404].includes(error.status), wanted)
    }
    t.match(await members.list('a'), [{ projects: null }])
  })

  t.test('an organization keeps an owner', async t => {
    const { members } = await start(t)
    t.match(await refusal(t, members.remove('a', 'boss@a.example', ADA), 400), 'the only owner')
    await refusal(t, members.update('a', 'boss@a.example', { role: 'admin' }, ADA), 400)
    await members.add({ organization: 'a', email: 'two@a.example', role: 'owner' }, ADA)
    await members.remove('a', 'boss@a.example', ADA)
    t.match(await members.list('a'), [{ email: 'two@a.example' }])
    const back = await members.add({ organization: 'a', email: 'boss@a.example', role: 'developer' }, ADA)
    t.match(back, { role: 'developer', projects: null })
  })

  t.test('a key has access for as long as the member who made it has', async t => {
    const subject = await start(t)
    const { members, accounts, keys } = subject
    await members.add({ organization: 'a', email: 'dev@a.example', role: 'developer', projects: ['web'] }, ADA)
    const { key, createdBy } = await accounts.createKey({ project: 'web', name: 'x', createdBy: 'dev@a.example' })
    t.equal(createdBy, 'dev@a.example')
    const access = async () => (await keys.find(sha256(key)))?.access
    t.equal(await access(), true)
    t.match(await keys.find(sha256(key)), { member: { role: 'developer' } })
    await members.update('a', 'dev@a.example', { projects: ['app'] }, ADA)
    t.equal(await access(), false)
    await members.update('a', 'dev@a.example', { role: 'admin' }, ADA)
    t.equal(await access(), true, 'admins have access to every project')
    await members.remove('a', 'dev@a.example', ADA)
    t.equal(await access(), false)
    await members.add({ organization: 'a', email: 'dev@a.example', role: 'developer' }, ADA)
    t.equal(await access(), true, 'one who comes back is who it was')
    const foreign = accounts.createKey({ project: 'web', name: 'x', createdBy: 'nobody@a.example' })
    await refusal(t, foreign, 404)
  })

  t.test('a key of another gateway is taken over once, with what it had spent', async t => {
    const { accounts, keys } = await start(t)
    const hash = sha256('sk-of-another-gateway')
    const past = { preview: 'sk-...eway', spent: 12_500_000_001n, revoked: false }
    const input = {
      project: 'web',
      name: 'x',
      hash,
      past,
      limit: { amount: 20_000_000_000n, period: 'month' },
    } as const
    const made = await accounts.createKey(input, ADA)
    t.match(made, { preview: 'sk-...eway', spent: 12_500_000_001n, limits: [{ spent: 12_500_000_001n }] })
    t.equal((await keys.find(hash))?.keyId, made.id)
    const again = await accounts.createKey({ ...input, name: 'y' }, ADA)
    t.match(again, { id: made.id, name: 'x', found: true, spent: 12_500_000_001n })
    const ended = { ...input, hash: sha256('sk-ended'), past: { ...past, revoked: true } }
    t.equal((await accounts.createKey(ended, ADA)).status, 'revoked')
  })
}

export function creditContract(t: Test, make: MakeSubject): void {
  t.test('payments and refunds are entries of the ledger, which a balance is the sum of', async t => {
    const subject = await make(t)
    const { credits, organizations, clock } = subject
    const { id } = await organizations.create({ name: 'a' }, ADA)
    const paid = await credits.add({ organization: 'a', amount: 1000n, reference: 'bill-1', note: 'thanks' }, ADA)
    t.match(paid, {
      kind: 'topup',
      account: 'credits',
      counter: 'payments',
      amount: 1000n,
      note: 'thanks',
      organization: 'a',
    })
    clock.now += 1
    t.match(await credits.refund({ organization: 'a', amount: 300n }, ADA), { kind: 'refund', amount: -300n })
    t.same(await credits.show('a'), { balance: 700n, held: 0n, used: 0n })
    t.match(await credits.entries(id), [{ amount: -300n }, { reference: 'bill-1' }])
    t.match(await refusal(t, credits.refund({ organization: 'a', amount: 701n }, ADA), 400), 'less than 0.000000701')
    t.same(await subject.usage.check(), [])
    await refusal(t, credits.add({ organization: 'nope', amount: 1n }, ADA), 404)
  })

  t.test('what is held cannot be refunded, but by an open account', async t => {
    const subject = await make(t)
    const { credits } = subject
    for (const [account, refused] of [
      ['prepaid', true],
      ['open', false],
    ] as const) {
      const principal = await subject.organization(account, 100n)
      await hold(subject, principal, `held by ${account}`, 60n)
      const refund = credits.refund({ organization: principal.orgId, amount: 50n }, ADA)
      if (refused) await refusal(t, refund, 400)
      else t.match(await refund, { amount: -50n })
      await credits.refund({ organization: principal.orgId, amount: 40n }, ADA)
    }
    t.same(await subject.usage.check(), [])
  })

  t.test('a payment or refund that a balance cannot hold is refused with the largest that it can', async t => {
    const subject = await make(t)
    const { credits, organizations } = subject
    await organizations.create({ name: 'a' }, ADA)
    for (const amount of [2n ** 63n, 2n ** 62n + 1n]) {
      t.match(
        await refusal(t, credits.add({ organization: 'a', amount }, ADA), 400),
        'At most 4611686018.427387904 USD',
      )
    }
    await credits.add({ organization: 'a', amount: 2n ** 62n - 5n }, ADA)
    t.match(await refusal(t, credits.add({ organization: 'a', amount: 6n }, ADA), 400), 'At most 0.000000005 USD')
    await credits.add({ organization: 'a', amount: 5n }, ADA)
    t.match(await refusal(t, credits.add({ organization: 'a', amount: 1n }, ADA), 400), 'At most 0 USD')
    t.equal((await credits.show('a')).balance, 2n ** 62n)

    const { orgId } = await subject.organization('open', 0n)
    const refund = credits.refund({ organization: orgId, amount: 2n ** 63n }, ADA)
    t.match(await refusal(t, refund, 400), 'At most 4611686018.427387904 USD')
    t.same(await subject.usage.check(), [])
  })

  t.test('a change sees what was charged in the same moment', async t => {
    const subject = await make(t)
    const { credits, accounts, ledger } = subject
    const principal = await subject.organization('prepaid', 100n)
    const held = await hold(subject, principal, 'a', 10n)
    if ('exhausted' in held) throw new Error('refused')
    const [settled, refund, updated] = await Promise.allSettled([
      ledger.settle(held, rowOf(principal, 'a', { cost: 60n })),
      credits.refund({ organization: principal.orgId, amount: 50n }, ADA),
      accounts.updateKey(principal.keyId, { limit: { set: { amount: 500n } } }),
    ])
    // Where several nodes write, either may be first.
    if (refund.status === 'rejected') t.match(refund.reason, { status: 400 })
    const { balance } = await ledger.balance(principal.orgId)
    t.equal(balance, refund.status === 'rejected' ? 40n : -10n)
    t.match([settled, updated], [{ status: 'fulfilled' }, { status: 'fulfilled' }])
    t.match(await accounts.listKeys(principal.projectId), [{ limits: [{ spent: 60n }] }], 'the limit counts it')
    t.same(await subject.usage.check(), [])
  })

  t.test('CC-09 a payment that is reported five times at once is booked once', async t => {
    const { credits, organizations } = await make(t)
    for (const name of ['a', 'b']) await organizations.create({ name }, ADA)
    const report = { organization: 'a', amount: 50n, reference: 'event-7' }
    const entries = await Promise.all(Array.from({ length: 5 }, () => credits.add(report, ADA)))
    for (const entry of entries) t.same(entry, entries[0])
    t.equal((await credits.show('a')).balance, 50n)
    await refusal(t, credits.add({ ...report, amount: 51n }, ADA), 400)
    await refusal(t, credits.add({ ...report, organization: 'b' }, ADA), 400)
    t.equal((await credits.show('b')).balance, 0n)
  })

  t.test('the most specific discount comes first, and zero takes one away', async t => {
    const subject = await make(t)
    const { credits, accounts } = subject
    const principal = await subject.organization('prepaid', 0n)
    const { key } = await accounts.createKey({ project: principal.projectId, name: 'x' })
    const discounts = async () => (await subject.keys.find(sha256(key)))!.discounts
    t.same(await discounts(), [])
    const none = { organization: null, provider: null, model: null }
    const own = principal.orgId
    await credits.discount({ ...none, millionths: 10_000 }, ADA)
    await credits.discount({ ...none, model: 'large', millionths: 20_000 }, ADA)
    await credits.discount({ ...none, organization: own, millionths: 30_000 }, ADA)
    await credits.discount({ ...none, organization: own, provider: 'acme', millionths: 40_000 }, ADA)
    await credits.discount({ organization: own, provider: 'acme', model: 'large', millionths: 50_000 }, ADA)
    t.same(
      (await discounts()).map(({ millionths }) => millionths),
      [50_000, 40_000, 30_000, 20_000, 10_000],
    )
    const other = await subject.organization('prepaid', 0n)
    t.equal((await credits.discounts(other.orgId)).length, 2)
    t.equal((await credits.discounts(own)).length, 5)
    await credits.discount({ ...none, organization: own, millionths: 0 }, ADA)
    await credits.discount({ ...none, organization: own, provider: 'acme', millionths: 45_000 }, ADA)
    t.match(await discounts(), [{ millionths: 50_000 }, { millionths: 45_000, provider: 'acme', model: null }, {}, {}])
  })
}

export function auditContract(t: Test, make: MakeSubject): void {
  t.test('every change has a line of who, what, before and after, and refused ones have none', async t => {
    const { organizations, projects, members, accounts, credits, plans, audit } = await make(t)
    const a = await organizations.create({ name: 'a' }, 'ada')
    const web = await projects.create({ organization: 'a', name: 'web' }, 'ada')
    await projects.update('web', { archived: true }, 'bob')
    const dev = await members.add({ organization: 'a', email: 'dev@a.example', role: 'developer' }, 'ada')
    await members.update('a', dev.id, { limit: { set: { amount: 5n } } }, 'ada')
    const { key, id } = await accounts.createKey({ project: 'web', name: 'k' }, 'ada')
    await accounts.updateKey(id, { limit: { set: { amount: 2_000_000_000n } } }, 'ada')
    await accounts.rollKey(id, 'ada')
    await credits.add({ organization: 'a', amount: 1_500_000_000n, reference: 'r' }, 'ada')
    await credits.add({ organization: 'a', amount: 1_500_000_000n, reference: 'r' }, 'ada')
    await plans.set('a', { plan: 'lite' }, 'ada')
    await accounts.revokeKey('nope', 'eve').catch(() => undefined)
    await organizations.create({ name: 'a' }, 'eve').catch(() => undefined)
    const entries = (await audit.list({ limit: 100 })).reverse()
    t.strictSame(
      entries.map(({ actor, action, subject }) => `${actor} ${action} ${subject}`),
      [
        `ada orgs.create ${a.id}`,
        `ada projects.create ${web.id}`,
        `bob projects.update ${web.id}`,
        `ada members.add ${dev.id}`,
        `ada members.update ${dev.id}`,
        `ada keys.create ${id}`,
        `ada keys.update ${id}`,
        `ada keys.roll ${id}`,
        `ada credits.add ${a.id}`,
        `ada plans.set ${a.id}`,
      ],
    )
    t.match(entries[0], { at: new Date(NOON).toISOString(), organization: 'a', before: null, after: { name: 'a' } })
    t.match(entries[2], { before: { status: 'active' }, after: { status: 'archived' } })
    t.match(entries[6], { before: { limits: [] }, after: { limits: [{ limit: '2', spent: '0' }] } })
    t.match(entries[8], { before: { balance: '0' }, after: { balance: '1.5' } })
    t.notOk(JSON.stringify(entries).includes(key), 'no secret is in it')
    t.match(await audit.list({ limit: 2, before: entries[5]!.id }), [
      { action: 'members.update' },
      { action: 'members.add' },
    ])
    await organizations.create({ name: 'b' }, 'ada')
    t.match(await audit.list({ organization: 'b', limit: 100 }), [{ action: 'orgs.create' }])
  })

  t.test('an operator needs no key for a request, and leaves none behind', async t => {
    const subject = await make(t)
    const { organizations, projects, accounts, operatorSessions: sessions } = subject
    await organizations.create({ name: 'a' }, ADA)
    const { id: projectId } = await projects.create({ organization: 'a', name: 'web' }, ADA)
    const find = async (key: string) => subject.keys.find(sha256(key))
    const first = await sessions.begin('web', ADA)
    const second = await sessions.begin(projectId, ADA)
    t.match(first, { key: /^mgw_es_/, expiresAt: new Date(NOON + 60_000).toISOString() })
    const principal = (await find(first.key))!
    t.match(principal, { keyName: 'gatewayctl', kind: 'session', projectId, access: true, expiresAt: NOON + 60_000 })
    t.equal((await find(second.key))!.keyId, principal.keyId, 'all of a project are found under one key')
    t.match(await subject.audit.list({ limit: 1 }), [{ actor: ADA, action: 'sessions.begin', subject: second.id }])

    await sessions.end(first.id)
    await sessions.end(first.id)
    t.equal(await find(first.key), undefined)
    t.ok(await find(second.key))
    t.match(await accounts.listKeys('web'), [{ id: principal.keyId, name: 'gatewayctl', status: 'active' }])
    await sessions.end(second.id)
    t.match(await accounts.listKeys('web'), [{ name: 'gatewayctl', status: 'expired', preview: 'none' }])

    const left = await sessions.begin('web', ADA)
    subject.clock.now += 60_000
    t.match(await accounts.listKeys('web'), [{ status: 'expired' }], 'one that is not ended is over after a minute')
    await sessions.begin('web', ADA)
    await refusal(t, subject.names.key(left.id), 404)

    const { key, id } = await accounts.createKey({ project: 'web', name: 'x' })
    await sessions.end(id)
    t.ok(await find(key), 'nothing but such a session is ended')
    await accounts.revokeKey(principal.keyId, ADA)
    t.match(await refusal(t, sessions.begin('web', ADA), 400), /^The key "gatewayctl" .* revoked/)
    await refusal(t, sessions.begin('nope', ADA), 404)
  })

  t.test('lists come in parts, each behind the last record of the one before', async t => {
    const { organizations, projects, members, accounts, credits, policies } = await make(t)
    const orgs = []
    for (const name of ['a', 'b', 'c']) orgs.push(await organizations.create({ name }, ADA))
    const [a] = orgs as [(typeof orgs)[0]]
    for (const name of ['one', 'two', 'three']) await projects.create({ organization: 'a', name }, ADA)
    for (const n of [1, 2, 3]) {
      await members.add({ organization: 'a', email: `${n}@a.example`, role: 'admin' }, ADA)
      await accounts.createKey({ project: 'one', name: `${n}` }, ADA)
      await credits.add({ organization: 'a', amount: BigInt(n), reference: `${n}` }, ADA)
      await policies.rules.add({ organization: 'a', type: 'deny_models', value: { models: [`${n}`] } }, ADA)
      const key = { organization: 'a', provider: 'p', label: `${n}`, secret: 's', fingerprint: 'f' }
      await policies.providerKeys.add(key, ADA)
    }
    await members.add({ organization: 'b', email: 'x@b.example', role: 'admin' }, ADA)
    const lists: ((page?: Page) => Promise<{ id: string }[]>)[] = [
      page => organizations.list(page),
      page => projects.list('a', page),
      page => members.list('a', page),
      page => accounts.listKeys(undefined, page),
      page => accounts.listKeys('one', page),
      page => policies.rules.list({ organization: 'a' }, page),
      page => policies.providerKeys.list('a', page),
    ]
    for (const list of lists) {
      const all = await list()
      t.equal(all.length, 3, String(list))
      t.same(await list({ limit: 2 }), all.slice(0, 2))
      t.same(await list({ after: all[1]!.id }), all.slice(2))
      t.same(await list({ after: all[2]!.id, limit: 2 }), [])
      t.same(await list({ after: '~' }), [], 'nothing follows what is not there')
    }
    t.same(await organizations.list({ after: a.id, limit: 1 }), [orgs[1]])
    for (const provider of ['x', 'y', 'z']) {
      await credits.discount({ organization: 'a', provider, model: null, millionths: 1 }, ADA)
      await policies.manifests.put({ organization: 'a', provider, manifest: '{}' }, ADA)
    }
    for (const list of [
      (...part: number[]) => credits.discounts('a', ...part),
      (...part: number[]) => policies.manifests.list('a', ...part),
    ]) {
      const all: { provider: string | null }[] = await list()
      t.equal(all.length, 3)
      t.same([await list(2), await list(2, 2)], [all.slice(0, 2), all.slice(2)])
    }
    const entries = await credits.entries('a')
    t.same(await credits.entries('a', 2), entries.slice(0, 2))
    t.same(await credits.entries('a', 2, 2), entries.slice(2))
  })

  t.test('names are answered with ids', async t => {
    const subject = await make(t)
    const { names, organizations, accounts } = subject
    const { id } = await organizations.create({ name: 'a' }, ADA)
    const { projectId, keyId } = await subject.organization('open', 0n)
    t.equal(await names.organization('a'), id)
    t.equal(await names.project(projectId), projectId)
    await accounts.revokeKey(keyId)
    t.equal(await names.key(keyId), keyId)
    await refusal(t, names.organization('nope'), 404)
    await refusal(t, names.project('nope'), 404)
    await refusal(t, names.key('nope'), 404)
  })

  t.test('request rows that are old are dropped, and the books still agree', async t => {
    const subject = await make(t)
    const { retention, usage, ledger, clock } = subject
    const principal = await subject.organization('prepaid', 1_000_000n)
    const ids = Array.from({ length: 1200 }, (_, i) => `22222222${String(i).padStart(4, '0')}`)
    await Promise.all(
      ids.map(async (id, i) => {
        const held = await ledger.hold({
          id,
          request: { ...rowOf(principal, id), requestId: id },
          principal,
          amount: 5n,
          expiresAt: clock.now + HOUR,
        })
        if ('exhausted' in held) throw new Error('refused')
        await ledger.settle(held, rowOf(principal, id, { at: NOON - (i < 700 ? HOUR : 0), cost: 3n }))
      }),
    )
    const before = await usage.totals({ from: 0, to: NOON + HOUR })
    const dropped: number[] = []
    do dropped.push(await retention.prune(NOON))
    while (dropped.at(-1)! > 0)
    t.same(dropped, [500, 200, 0])
    t.same(await usage.totals({ from: 0, to: NOON + HOUR }), before, 'sums stay')
    t.same(await usage.check(), [])
    t.same(await ledger.balance(principal.orgId), { balance: 1_000_000n - 3600n, held: 0n, used: 3600n })
  })
}

const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex')
