/** What every store of policies must do. Runs on whatever `make` makes. */
import type { Test } from 'tap'
import type { Hold, Principal } from '../../src/core/ports.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { noDemands } from '../../src/policy/compliance.ts'
import { HOUR, identity, type MakeSubject, NOON, rowOf, type Subject } from '../stores/subject.ts'

const BY = 'tester'
const SECRET = 'sk-canary-0123456789abcdef'

async function refusal(t: Test, promise: Promise<unknown>, status: number): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof GatewayError)) throw new Error(`expected a refusal, got ${error}`)
  t.equal(error.status, status)
  return error.message
}

const two = async (subject: Subject): Promise<[Principal, Principal]> => [
  await subject.organization('open', 0n),
  await subject.organization('open', 0n),
]
const key = (organization: string, provider = 'acme', label = 'main') => ({
  organization,
  provider,
  label,
  secret: SECRET,
  fingerprint: 'f1e2d3c',
})

export function policyStoreContract(t: Test, make: MakeSubject): void {
  t.test('the facts of an organization are the same object until something of it changes', async t => {
    const subject = await make(t)
    const { policies } = subject
    const [a, b] = await two(subject)
    const facts = async () => [await policies.facts(a.orgId), await policies.facts(b.orgId)]
    const [emptyA, emptyB] = await facts()
    t.match(emptyA, { orgId: a.orgId, version: 0, rules: [], keys: [], manifests: [], compliance: undefined })
    t.equal((await facts())[0], emptyA)
    const changes: (() => Promise<unknown>)[] = [
      () => policies.rules.add({ organization: a.orgId, type: 'deny_models', value: { models: ['x'] } }, BY),
      () => policies.providerKeys.add(key(a.orgId), BY),
      () => policies.manifests.put({ organization: a.orgId, provider: 'mine', manifest: '{}' }, BY),
      () => policies.manifests.put({ organization: a.orgId, provider: 'mine', manifest: '{"a":1}' }, BY),
      () => policies.compliance.change(a.orgId, { gdpr: true }, BY),
      () => policies.compliance.clear(a.orgId, BY),
      async () => policies.rules.setStatus((await policies.rules.list({}))[0]!.id, 'inactive', undefined, BY),
      async () => policies.rules.remove((await policies.rules.list({}))[0]!.id, undefined, BY),
      async () => policies.providerKeys.remove((await policies.providerKeys.list())[0]!.id, undefined, BY),
      () => policies.manifests.remove(a.orgId, 'mine', BY),
    ]
    for (const change of changes) {
      const [before] = await facts()
      await change()
      const [after, other] = await facts()
      t.not(after, before, String(change))
      t.equal((await facts())[0], after)
      t.equal(other, emptyB, 'the other organization has changed nothing')
    }
    const [last] = await facts()
    t.match(last, { rules: [], keys: [], manifests: [], compliance: undefined })
  })

  t.test('rules narrow an organization or one key of it, and those out of force are no facts', async t => {
    const { policies, ...subject } = await make(t)
    const [a, b] = await two({ policies, ...subject })
    const org = await policies.rules.add(
      { organization: a.orgId, type: 'allow_models', value: { models: ['x', 'y'] } },
      BY,
    )
    const own = await policies.rules.add({ key: a.keyId, type: 'deny_pricing', value: { pricing: 'paid' } }, BY)
    const theirs = await policies.rules.add({ key: b.keyId, type: 'deny_ip_cidrs', value: { ipCidrs: ['::/0'] } }, BY)
    t.match(org, {
      organization: a.orgName,
      key: null,
      type: 'allow_models',
      value: { models: ['x', 'y'] },
      status: 'active',
    })
    t.match(own, { organization: a.orgName, key: a.keyId })
    const ids = async (scope: object) => (await policies.rules.list(scope)).map(({ id }) => id)
    t.strictSame(await ids({}), [org.id, own.id, theirs.id])
    t.strictSame(await ids({ organization: a.orgId }), [org.id, own.id])
    t.strictSame(await ids({ key: a.keyId }), [own.id])
    t.strictSame((await policies.facts(a.orgId)).rules, [
      { id: org.id, type: 'allow_models', keyId: undefined, memberId: undefined, models: ['x', 'y'] },
      { id: own.id, type: 'deny_pricing', keyId: a.keyId, memberId: undefined, pricing: 'paid' },
    ])
    await policies.rules.setStatus(org.id, 'inactive', a.orgId, BY)
    t.strictSame(
      (await policies.facts(a.orgId)).rules.map(({ id }) => id),
      [own.id],
    )
    t.match(await policies.rules.list({ organization: a.orgId }), [{ status: 'inactive' }, { status: 'active' }])
    await policies.rules.setStatus(org.id, 'active', undefined, BY)
    t.equal((await policies.facts(a.orgId)).rules.length, 2)
  })

  t.test('rules narrow all keys of a member of the organization', async t => {
    const { policies, members, ...subject } = await make(t)
    const [a, b] = await two({ policies, members, ...subject })
    const { id } = await members.add({ organization: a.orgId, email: 'ada@x.example', role: 'developer' }, BY)
    const denied = { type: 'deny_models', value: { models: ['x'] } } as const
    const made = await policies.rules.add({ organization: a.orgId, member: 'ada@x.example', ...denied }, BY)
    t.match(made, { organization: a.orgName, member: 'ada@x.example', key: null })
    t.match((await policies.facts(a.orgId)).rules, [{ id: made.id, memberId: id, keyId: undefined, models: ['x'] }])
    t.strictSame(await policies.rules.list({ organization: a.orgId, member: id }), [made])
    t.strictSame(await policies.rules.list({ key: a.keyId }), [])
    await refusal(t, policies.rules.add({ organization: b.orgId, member: id, ...denied }, BY), 404)
    await refusal(t, policies.rules.list({ organization: b.orgId, member: 'ada@x.example' }), 404)
    await refusal(t, policies.rules.add({ member: id, ...denied }, BY), 400)
    await refusal(t, policies.rules.add({ organization: a.orgId, member: id, key: a.keyId, ...denied }, BY), 400)
    await members.remove(a.orgId, id, BY)
    t.match(await policies.rules.list({ organization: a.orgId }), [{ member: 'ada@x.example' }], 'it is still listed')
    await policies.rules.remove(made.id, undefined, BY)
  })

  t.test('a provider key is for some models and may spend so much, as it is set and changed', async t => {
    const subject = await make(t)
    const { policies } = subject
    const [a, b] = await two(subject)
    const limit = { amount: 5_000_000_000n }
    const made = await policies.providerKeys.add({ ...key(a.orgId), models: ['x', 'acme/y'], limit }, BY)
    const total = { period: 'total', limit: limit.amount, spent: 0n, zone: 'UTC', resetsAt: null }
    t.match(made, { models: ['x', 'acme/y'], limits: [total] })
    const facts = () => policies.facts(a.orgId)
    const [{ budgets } = { budgets: [] }] = (await facts()).keys
    t.match((await facts()).keys, [{ models: ['x', 'acme/y'], budgets: [{ of: 'provider-key', period: 'total' }] }])

    const before = await facts()
    const monthly = { set: { amount: 1n, period: 'month' } } as const
    const changed = await policies.providerKeys.update(made.id, a.orgId, { models: null, limit: monthly }, BY)
    t.match(changed, { label: 'main', models: null, limits: [total, { period: 'month', limit: 1n }] })
    t.not(await facts(), before)
    t.match((await facts()).keys, [{ models: undefined, budgets: { length: 2 } }])
    await policies.providerKeys.update(made.id, undefined, { limit: { drop: 'period' }, label: 'other' }, BY)
    t.match(await policies.providerKeys.list(a.orgId), [{ label: 'other', limits: [total] }])
    t.strictSame((await facts()).keys[0]?.budgets, budgets)
    await refusal(t, policies.providerKeys.update(made.id, b.orgId, { label: 'mine' }, BY), 404)
    t.match(await subject.audit.list({ organization: a.orgId, limit: 1 }), [
      { action: 'provider-keys.update', before: { label: 'main' }, after: { label: 'other' } },
    ])

    // What is spent by it counts, and is told; its caller pays no credits all the same.
    const principal = { ...a, budgets }
    const ask = (id: string, amount: bigint) =>
      subject.ledger.hold({ id, request: identity(id), principal, amount, byok: true, expiresAt: NOON + HOUR })
    const hold = (await ask('1', 5_000_000_000n)) as Hold
    t.equal(hold.funds, 'byok')
    t.match(await ask('2', 1n), { exhausted: 'provider-key' })
    await subject.ledger.settle(hold, rowOf(a, '1', { cost: 4_999_999_999n }))
    t.match(await policies.providerKeys.list(a.orgId), [{ limits: [{ spent: 4_999_999_999n }] }])
    await policies.providerKeys.remove(made.id, a.orgId, BY)
    t.strictSame((await facts()).keys, [])
  })

  t.test('the successor of a key has its rules', async t => {
    const subject = await make(t)
    const { policies, accounts } = subject
    const [a] = await two(subject)
    const rule = await policies.rules.add({ key: a.keyId, type: 'deny_models', value: { models: ['x'] } }, BY)
    const { id } = await accounts.rollKey(a.keyId)
    t.match(await policies.rules.list({ key: id }), [{ id: rule.id }])
    t.match((await policies.facts(a.orgId)).rules, [{ keyId: id, models: ['x'] }])
  })

  t.test('one organization reaches nothing of another one', async t => {
    const subject = await make(t)
    const { policies } = subject
    const [a, b] = await two(subject)
    const theirs = {
      key: await policies.providerKeys.add(key(b.orgId), BY),
      rule: await policies.rules.add({ organization: b.orgId, type: 'deny_models', value: { models: ['x'] } }, BY),
    }
    await policies.manifests.put({ organization: b.orgId, provider: 'theirs', manifest: '{}' }, BY)
    await policies.compliance.change(b.orgId, { gdpr: true }, BY)
    const tries: [() => Promise<unknown>, RegExp][] = [
      [() => policies.providerKeys.remove(theirs.key.id, a.orgId, BY), /no provider key with the id/],
      [() => policies.rules.remove(theirs.rule.id, a.orgId, BY), /no rule with the id/],
      [() => policies.rules.setStatus(theirs.rule.id, 'inactive', a.orgId, BY), /no rule with the id/],
      [() => policies.rules.list({ organization: a.orgId, key: b.keyId }), /no key with the id/],
      [
        () =>
          policies.rules.add(
            { organization: a.orgId, key: b.keyId, type: 'deny_models', value: { models: ['x'] } },
            BY,
          ),
        /no key with the id/,
      ],
      [() => policies.manifests.remove(a.orgId, 'theirs', BY), /has no custom provider "theirs"/],
    ]
    for (const [attempt, said] of tries) t.match(await refusal(t, attempt(), 404), said)
    t.strictSame(await policies.providerKeys.list(a.orgId), [])
    t.strictSame(await policies.rules.list({ organization: a.orgId }), [])
    t.strictSame(await policies.manifests.list(a.orgId), [])
    t.equal(await policies.compliance.show(a.orgId), null)
    t.match(await policies.facts(a.orgId), { rules: [], keys: [], manifests: [], compliance: undefined })
    t.match(await policies.facts(b.orgId), { rules: [{}], keys: [{}], manifests: ['{}'], compliance: { gdpr: true } })
  })

  t.test('what is not there is a 404 that says so', async t => {
    const { policies } = await make(t)
    const tries = [
      () => policies.rules.add({ organization: 'nobody', type: 'deny_models', value: { models: ['x'] } }, BY),
      () => policies.rules.add({ key: 'nobody', type: 'deny_models', value: { models: ['x'] } }, BY),
      () => policies.rules.remove('nobody', undefined, BY),
      () => policies.rules.setStatus('nobody', 'active', undefined, BY),
      () => policies.providerKeys.add(key('nobody'), BY),
      () => policies.providerKeys.list('nobody'),
      () => policies.providerKeys.remove('nobody', undefined, BY),
      () => policies.manifests.put({ organization: 'nobody', provider: 'p', manifest: '{}' }, BY),
      () => policies.compliance.change('nobody', {}, BY),
    ]
    for (const attempt of tries) t.match(await refusal(t, attempt(), 404), 'nobody')
    await refusal(t, policies.rules.add({ type: 'deny_models', value: { models: ['x'] } }, BY), 400)
  })

  t.test('a compliance policy is changed demand by demand', async t => {
    const subject = await make(t)
    const { policies } = subject
    const [a] = await two(subject)
    t.equal(await policies.compliance.show(a.orgId), null)
    t.strictSame(await policies.compliance.change(a.orgId, { noTraining: true, soc2: '2' }, BY), {
      ...noDemands,
      noTraining: true,
      soc2: '2',
    })
    t.match(await policies.compliance.change(a.orgId, { countries: ['DE'] }, BY), {
      noTraining: true,
      countries: ['DE'],
    })
    const without = await policies.compliance.change(a.orgId, { soc2: undefined }, BY)
    t.equal(without.soc2, undefined)
    t.match((await policies.facts(a.orgId)).compliance, { noTraining: true, countries: ['DE'] })
    await policies.compliance.clear(a.orgId, BY)
    t.equal(await policies.compliance.show(a.orgId), null)
  })

  t.test('a provider key is listed by its fingerprint, and its secret is nowhere', async t => {
    const subject = await make(t)
    const { policies } = subject
    const [a] = await two(subject)
    const record = await policies.providerKeys.add(key(a.orgId), BY)
    t.match(record, { organization: a.orgName, provider: 'acme', label: 'main', fingerprint: 'f1e2d3c' })
    t.strictSame(await policies.providerKeys.list(a.orgId), [record])
    const shown = JSON.stringify([record, await policies.providerKeys.list(), await policies.facts(a.orgId)])
    t.notMatch(shown, SECRET)
    t.match(await policies.masterKeys.versions(), [{ kind: 'provider_keys', versions: [record.keyVersion] }])
  })

  t.test('every change has its line in the audit log, without a secret', async t => {
    const subject = await make(t)
    const { policies, audit } = subject
    const [a] = await two(subject)
    const made = await policies.providerKeys.add(key(a.orgId), BY)
    await policies.providerKeys.remove(made.id, undefined, BY)
    const rule = await policies.rules.add({ organization: a.orgId, type: 'deny_models', value: { models: ['x'] } }, BY)
    await policies.rules.setStatus(rule.id, 'inactive', undefined, BY)
    await policies.rules.remove(rule.id, undefined, BY)
    await policies.compliance.change(a.orgId, { gdpr: true }, BY)
    await policies.compliance.clear(a.orgId, BY)
    await policies.manifests.put({ organization: a.orgId, provider: 'mine', manifest: '{"a":1}' }, BY)
    await policies.manifests.remove(a.orgId, 'mine', BY)
    const entries = (await audit.list({ organization: a.orgId, limit: 20 })).filter(({ actor }) => actor === BY)
    t.strictSame(
      entries.map(({ action, actor }) => [action, actor]),
      [
        'models.custom.remove',
        'models.custom.add',
        'compliance.clear',
        'compliance.set',
        'iam.remove',
        'iam.update',
        'iam.add',
        'provider-keys.remove',
        'provider-keys.add',
      ].map(action => [action, BY]),
    )
    t.match(entries[5], { before: { status: 'active' }, after: { status: 'inactive' }, subject: rule.id })
    t.match(entries[1], { before: null, after: { a: 1 } })
    t.notMatch(JSON.stringify(entries), SECRET)
  })
}
