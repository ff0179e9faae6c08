/** Organizations' policies as a whole gateway puts them together: what is opened when, and what the operator may add. */
import t, { type Test } from 'tap'
import { OrganizationPolicies, policyAdmin } from '../../src/app/policies.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { CallerFacts } from '../../src/core/policy.ts'
import type { Log } from '../../src/core/ports.ts'
import type { Provider } from '../../src/core/translator.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { noDemands } from '../../src/policy/compliance.ts'
import { Keyring, keyFile } from '../../src/stores/keyring.ts'
import { fakeRegistries } from '../config/kit.ts'
import { sqliteSubject } from '../stores/subject.ts'
import { catalogOf, offer } from './kit.ts'

const CAPS = { timeoutMs: 600_000, connectMs: 15_000, concurrency: 64 }
const SECRET = 'sk-canary-0123456789abcdef'
const BY = 'tester'

const caller = (keyId: string, memberId?: string): CallerFacts => ({
  keyId,
  member: memberId === undefined ? undefined : { id: memberId, role: 'admin' },
})

function gateway(t: Test, change: (shared: Catalog) => Catalog = shared => shared) {
  const subject = sqliteSubject(t)
  const logged: string[] = []
  const note = (fields: object, message: string) => logged.push(`${message} ${JSON.stringify(fields)}`)
  const log: Log = { debug() {}, info: note, warn: note, error: note }
  const keyring = new Keyring({ given: undefined, file: keyFile(subject.path) })
  const { wires, operations } = fakeRegistries()
  const parts = { stores: subject.policies, keyring, log, wires, operations, allowPrivate: false }
  const policies = new OrganizationPolicies(parts)
  const offers = catalogOf([
    { provider: 'acme', model: 'large' },
    { provider: 'free', model: 'large' },
  ])
  const shared = change({ ...offers, customCaps: CAPS })
  const admin = policyAdmin(parts, policies, () => shared)
  return { subject, logged, policies, admin, shared, parts }
}

/** The same catalogue with another provider in it. */
const withProvider = (more: Partial<Provider>) => (shared: Catalog) => {
  const provider: Provider = { ...offer().provider, ...more }
  return { ...shared, providers: new Map([...shared.providers, [provider.id, provider]]) }
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.catch((thrown: unknown) => thrown)
  return error instanceof GatewayError ? `${error.status} ${error.message}` : `not refused: ${error}`
}

t.test('provider keys are credentials of their organization alone, the oldest first, and opened once', async t => {
  const { subject, policies, admin } = gateway(t)
  const [a, b] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
  const add = (label: string, secret: string) =>
    admin.providerKeys.add({ organization: a.orgId, provider: 'acme', label, secret }, BY)
  const [one, two] = [await add('one', `${SECRET}-1`), await add('two', ` ${SECRET}-2\n`)]
  const policy = await policies.of(a.orgId)
  const credentials = policy.credentials('acme')
  t.strictSame(
    credentials.map(({ id, source, secret, label }) => ({ id, source, secret, label })),
    [
      { id: one.id, source: 'byok', secret: `${SECRET}-1`, label: 'one' },
      { id: two.id, source: 'byok', secret: `${SECRET}-2`, label: 'two' },
    ],
  )
  t.equal(policy.credentials('acme'), credentials, 'the same objects, so that tokens made of them last')
  t.strictSame(policy.credentials('free'), [])
  t.strictSame((await policies.of(b.orgId)).credentials('acme'), [])
  t.equal(await policies.of(a.orgId), policy)
  await admin.providerKeys.remove(one.id, a.orgId, BY)
  t.strictSame(
    (await policies.of(a.orgId)).credentials('acme').map(({ id }) => id),
    [two.id],
  )
})

t.test('AT-14 a key that cannot be opened is a 503 which shows nothing, and the rest of the policy holds', async t => {
  const { subject, policies, admin, logged } = gateway(t)
  const { orgId, keyId } = await subject.organization('open', 0n)
  await admin.providerKeys.add({ organization: orgId, provider: 'acme', label: 'l', secret: SECRET }, BY)
  subject.db.prepare('UPDATE provider_keys SET ciphertext = randomblob(length(ciphertext))').run()
  await subject.policies.rules.add({ organization: orgId, type: 'deny_models', value: { models: ['large'] } }, BY)
  const policy = await policies.of(orgId)
  t.ok(policy.access(caller(keyId)).issue(offer()))
  for (const _ of [1, 2]) {
    try {
      policy.credentials('acme')
      t.fail('it must not open')
    } catch (error) {
      t.match(error, { status: 503, code: 'credential_unavailable' })
      t.notMatch(String(error), SECRET)
    }
  }
  t.match(logged.join('\n'), /provider key not decrypted/)
  t.notMatch(logged.join('\n'), SECRET)
})

t.test('keys and members with rules of their own have an access each, all others share one', async t => {
  const { subject, policies } = gateway(t)
  const { orgId, keyId } = await subject.organization('open', 0n)
  const before = (await policies.of(orgId)).access(caller('some key'))
  await subject.policies.rules.add({ key: keyId, type: 'deny_models', value: { models: ['large'] } }, BY)
  const policy = await policies.of(orgId)
  const [own, other] = [policy.access(caller(keyId)), policy.access(caller('another key'))]
  t.equal(policy.access(caller('a third key')), other)
  t.ok(own.issue(offer()))
  t.notOk(other.issue(offer()))
  t.notOk(other.restricted)
  t.equal(new Set([before.id, own.id, other.id]).size, 3, 'nothing cached is shared between them')

  const { id: memberId } = await subject.members.add({ organization: orgId, email: 'ada@x.example', role: 'admin' }, BY)
  const value = { providers: ['acme'] }
  await subject.policies.rules.add({ organization: orgId, member: memberId, type: 'deny_providers', value }, BY)
  const later = await policies.of(orgId)
  const reasons = (who: CallerFacts, at = later) => {
    const { issue } = at.access(who)
    return ['acme', 'free'].map(provider => issue(offer({ provider }))?.reason.replace(/ \(rule .* of/, ' (of'))
  }
  const inList = 'Provider acme is in the denied providers list (of the member)'
  const model = 'Model large is in the denied models list (of the API key)'
  t.strictSame(reasons(caller('a key', memberId)), [inList, undefined])
  t.strictSame(reasons(caller(keyId, memberId)), [inList, model])
  t.strictSame(reasons(caller(keyId)), [model, model])
  t.strictSame(reasons(caller('a key')), [undefined, undefined])
  t.equal(later.access(caller('a key', memberId)), later.access(caller('another key', memberId)))

  const session = { id: 's', models: ['small', 'free/large'] }
  const scoped = { ...caller('a key', memberId), session }
  t.strictSame(reasons(scoped), [inList, undefined], 'a session narrows what its key may')
  t.strictSame(reasons({ ...scoped, session: { id: 's', models: ['small'] } }), [
    inList,
    'Model large is not in the allowed models list (of the session)',
  ])
  t.equal(later.access(scoped), later.access(scoped), 'and is judged once')
  t.equal(later.access({ ...scoped, session: { ...session, models: undefined } }), later.access(caller('k', memberId)))
  const ids = [caller('k'), caller('k', memberId), caller(keyId), caller(keyId, memberId), scoped]
  t.equal(new Set(ids.map(who => later.access(who).id)).size, ids.length)

  t.ok(policy.keepsReplies)
  await subject.policies.compliance.change(orgId, { ...noDemands, noLogging: true }, BY)
  t.notOk((await policies.of(orgId)).keepsReplies)
})

t.test('what an organization declares is in its catalogue only, and its key can be added', async t => {
  const { subject, policies, admin, shared } = gateway(t)
  const [a, b] = [await subject.organization('open', 0n), await subject.organization('open', 0n)]
  const manifest = `{ provider: mine, name: Mine, base_url: https://llm.mine.example/v1, auth: { scheme: bearer },
    wires: { chat: openai.chat }, models: [{ model: mine-7b }] }`
  t.strictSame(await admin.manifests.declare(a.orgId, manifest, BY), {
    organization: a.orgName,
    provider: 'mine',
    models: ['mine-7b'],
  })
  const policy = await policies.of(a.orgId)
  const catalog = policy.catalog(shared)
  t.ok(catalog.models.has('mine-7b'))
  t.equal(policy.catalog(shared), catalog, 'linked once')
  t.equal((await policies.of(b.orgId)).catalog(shared), shared)
  const key = { provider: 'mine', label: 'l', secret: SECRET }
  t.ok(await admin.providerKeys.add({ organization: a.orgId, ...key }, BY))
  t.match(await refusal(admin.providerKeys.add({ organization: b.orgId, ...key }, BY)), /^404 Unknown provider "mine"/)
  t.match(await refusal(admin.manifests.declare(a.orgId, 'provider: [', BY)), /^400 manifest:\d+:\d+: /)
  t.match(await refusal(admin.manifests.declare('nobody', manifest, BY)), /^404 There is no organization "nobody"/)
  const unknown = (org: string, names: { models?: string[]; providers?: string[] }) => admin.unknown(org, names)
  t.strictSame(await unknown(a.orgId, { models: ['mine-7b', 'mine/mine-7b', 'large', 'lrage'] }), ['lrage'])
  t.strictSame(await unknown(b.orgId, { models: ['mine-7b'], providers: ['mine', 'custom', 'acme'] }), [
    'mine-7b',
    'mine',
  ])
})

t.test(
  'custom providers are refused by the name of the switch where they are off, and stored ones are left out',
  async t => {
    const on = gateway(t)
    const { orgId } = await on.subject.organization('open', 0n)
    const manifest = `{ provider: mine, name: Mine, base_url: https://llm.mine.example/v1, auth: { scheme: bearer },
    wires: { chat: openai.chat }, models: [{ model: mine-7b }] }`
    await on.admin.manifests.declare(orgId, manifest, BY)

    const shared = { ...on.shared, customCaps: undefined }
    const admin = policyAdmin(on.parts, on.policies, () => shared)
    t.match(
      await refusal(admin.manifests.declare(orgId, manifest, BY)),
      /^400 Custom providers are off\. Set `custom_providers: \{ enabled: true \}` in gateway\.yaml/,
    )
    t.equal((await on.policies.of(orgId)).catalog(shared), shared)
    t.match(on.logged.join('\n'), /custom provider skipped .*custom_providers: \{ enabled: true \}/)
  },
)

t.test('a change of a rule links no manifest again, and a change of a manifest does', async t => {
  const { subject, policies, admin, shared } = gateway(t)
  const { orgId } = await subject.organization('open', 0n)
  const declare = (name: string) =>
    admin.manifests.declare(
      orgId,
      `{ provider: mine, name: ${name}, base_url: https://llm.mine.example/v1, auth: { scheme: bearer },
      wires: { chat: openai.chat }, models: [{ model: mine-7b }] }`,
      BY,
    )
  await declare('Mine')
  const policy = await policies.of(orgId)
  const linked = policy.catalog(shared)
  await admin.rules.add({ organization: orgId, type: 'deny_models', value: { models: ['large'] } }, BY)
  const ruled = await policies.of(orgId)
  t.not(ruled, policy)
  t.equal(ruled.catalog(shared), linked)
  t.not(ruled.catalog({ ...shared }), linked, 'nor is it of another shared one')
  await declare('Ours')
  t.equal((await policies.of(orgId)).catalog(shared).providers.get('mine')?.name, 'Ours')
})

t.test('a secret is taken only where it can be used', async t => {
  const { subject, admin } = gateway(
    t,
    withProvider({ id: 'cloud', auth: { scheme: 'aws-sigv4', region: 'r', service: 's' } }),
  )
  const keyless = gateway(t, withProvider({ id: 'local', auth: { scheme: 'none' } }))
  const { orgId } = await subject.organization('open', 0n)
  const add = (provider: string, secret: string, on = admin, organization = orgId) =>
    refusal(on.providerKeys.add({ organization, provider, label: 'l', secret }, BY))
  t.match(await add('acem', SECRET), /^404 Unknown provider "acem"; did you mean "acme"\?/)
  t.match(await add('acme', ' \n'), /^400 The secret is empty/)
  t.match(await add('acme', 'sk-canary-\u0000'), /^400 A secret contains a line break/)
  t.match(await add('acme', 'x'.repeat(16_385)), /^400 The secret is longer/)
  t.match(await add('cloud', SECRET), /^400 Expected "ACCESS_KEY_ID:SECRET_ACCESS_KEY"/)
  t.notMatch(await add('cloud', SECRET), SECRET)
  const other = await keyless.subject.organization('open', 0n)
  t.match(await add('local', SECRET, keyless.admin, other.orgId), /^400 The provider local takes no key/)
  t.strictSame(await admin.providerKeys.list(), [])
})
