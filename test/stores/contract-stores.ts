/** What the stores of a node must do together, whatever keeps them. */
import type { Test } from 'tap'
import type { Hold } from '../../src/core/ports.ts'
import { refusal } from './contract.ts'
import { hold, type MakeSubject, rowOf } from './subject.ts'

const ADA = 'ada'

export function storesContract(t: Test, make: MakeSubject): void {
  t.test('an overdraft is what balances that may not fall below zero have fallen below it', async t => {
    const subject = await make(t)
    t.equal(await subject.overdraft(), 0n)
    for (const [account, credits, cost] of [
      ['prepaid', 100n, 130n],
      ['prepaid', 100n, 105n],
      ['prepaid', 100n, 40n],
      ['open', 0n, 1000n],
    ] as const) {
      const principal = await subject.organization(account, credits)
      const held = (await hold(subject, principal, principal.orgId, 10n)) as Hold
      await subject.ledger.settle(held, rowOf(principal, principal.orgId, { cost }))
    }
    t.equal(await subject.overdraft(), 35n)
    await subject.ping()
  })

  t.test('a process that works on the stores counts as living', async t => {
    t.ok((await (await make(t)).living()) >= 1)
  })

  t.test('of a change that is refused nothing is left, nor a line of it', async t => {
    const { organization, accounts, members, projects, policies, audit } = await make(t)
    const { orgId, keyId, projectId } = await organization('prepaid', 0n)
    const project = { organization: orgId, name: 'other' }
    const { id: other } = await projects.create(project, ADA)
    const { email } = await members.add(
      { organization: orgId, email: 'dev@a.example', role: 'developer', projects: [projectId] },
      ADA,
    )
    const state = async () => [
      await accounts.listKeys(),
      await members.list(),
      await projects.list(),
      await policies.providerKeys.list(),
      await policies.facts(orgId),
      await audit.list({ limit: 100 }),
    ]
    const before = await state()
    const limit = { set: { amount: 1n, zone: 'Mars/Olympus' } }
    const key = { organization: orgId, provider: 'acme', label: 'l', secret: 's', fingerprint: 'f' }
    const attempts: readonly (readonly [status: number, change: () => Promise<unknown>])[] = [
      [400, () => accounts.updateKey(keyId, { name: 'new', limit })],
      [400, () => accounts.createKey({ project: projectId, name: 'new', limit: limit.set })],
      [404, () => members.update(orgId, email, { role: 'admin', projects: [other, 'nope'] }, ADA)],
      [400, () => members.update(orgId, email, { projects: null, limit }, ADA)],
      [404, () => members.add({ organization: orgId, email: 'new@a.example', role: 'admin', projects: ['nope'] }, ADA)],
      [400, () => projects.create(project, ADA)],
      [400, () => policies.providerKeys.add({ ...key, limit: limit.set }, ADA)],
    ]
    for (const [status, change] of attempts) {
      await refusal(t, change(), status)
      t.strictSame(await state(), before, String(change))
    }
  })

  t.test('a re-encryption leaves what is under the newest master key as it is', async t => {
    const { organization, policies, audit } = await make(t)
    const { orgId } = await organization('open', 0n)
    const key = { organization: orgId, provider: 'acme', label: 'l', secret: 's', fingerprint: 'f' }
    const { keyVersion } = await policies.providerKeys.add(key, ADA)
    const none = { reencrypted: 0, unreadable: 0 }
    const kinds = { provider_keys: none, responses: none, realtime_secrets: none, jobs: none, contents: none }
    const done = { reencrypted: 0, unreadable: [], keyVersion, kinds }
    t.same(await policies.masterKeys.reencrypt(false, ADA), done)
    t.match(await audit.list({ limit: 1 }), [{ action: 'provider-keys.reencrypt', subject: keyVersion, after: done }])
  })
}
