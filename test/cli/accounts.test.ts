/** `gatewayctl` orgs, projects, members, keys, credits, plans, usage and audit, on stores as a gateway has them. */
import t, { type Test } from 'tap'
import { adminListener } from '../../src/admin/server.ts'
import { OrganizationPolicies, policyAdmin } from '../../src/app/policies.ts'
import { run } from '../../src/cli/program.ts'
import { linkPlans, plansEntry } from '../../src/config/plans.ts'
import { check } from '../../src/config/validate.ts'
import type { Log, Principal } from '../../src/core/ports.ts'
import { s } from '../../src/core/schema.ts'
import { Keyring } from '../../src/stores/keyring.ts'
import { openSqlite } from '../../src/stores/sqlite/index.ts'
import { fakeContext, TOKEN } from '../admin/fake.ts'
import { fakeRegistries } from '../config/kit.ts'
import { rowOf } from '../stores/subject.ts'

type Tree = Record<string, unknown>
interface Ran {
  code: number
  stdout: string
  stderr: string
}

const log: Log = { debug() {}, info() {}, warn() {}, error() {} }

async function shell(t: Test) {
  const stores = openSqlite(':memory:')
  const fake = fakeContext()
  const file = check(s.object({ plans: plansEntry }), {})
  if ('issue' in file) throw new Error(file.issue.message)
  const declared = linkPlans(file.value.plans)
  const shown = { ...fake.snapshot(), plans: declared }
  const keyring = new Keyring({ given: 'a master key that is long enough', file: '' })
  const parts = { stores: stores.policies, keyring, log, ...fakeRegistries(), allowPrivate: false }
  const policies = policyAdmin(parts, new OrganizationPolicies(parts), () => shown.catalog)
  const context = Object.assign(fake, stores, { policies, snapshot: () => shown })
  const listener = await adminListener({ context, token: TOKEN, listen: '127.0.0.1:0', log })
  t.teardown(async () => {
    await listener.close()
    await stores.close()
  })
  const ctl = async (line: string, user = 'ada'): Promise<Ran> => {
    const output = { stdout: '', stderr: '' }
    const code = await run(line.split(' ').filter(Boolean), {
      cwd: t.testdir({}),
      env: { GATEWAY_ADMIN: `http://${listener.address}`, GATEWAY_ADMIN_TOKEN: TOKEN, USER: user },
      out: text => {
        output.stdout += text
      },
      err: text => {
        output.stderr += text
      },
    })
    return { code, ...output }
  }
  /** The JSON of a command that must succeed, which must be legible without `--json` too, when it can be repeated. */
  const json = async <T = Tree>(line: string, user?: string): Promise<T> => {
    const { code, stdout, stderr } = await ctl(`${line} --json`, user)
    t.match([code, stderr], [0, ''], line)
    return JSON.parse(stdout) as T
  }
  return { stores, ctl, json }
}

t.test('organizations, projects and members are made, listed and changed', async t => {
  const { ctl, json } = await shell(t)
  const org = await json('orgs create --name acme')
  t.match(org, { id: String, name: 'acme', account: 'prepaid', plan: null, retains: false })
  t.match(await json(`orgs update ${org.id} --name acme-inc --retain on`), { name: 'acme-inc', retains: true })
  t.match(await json('orgs list'), [{ id: org.id, name: 'acme-inc' }])
  t.match((await ctl('orgs list')).stdout, /^id +name +account +plan[\s\S]*acme-inc +prepaid +none +- +yes/)

  const web = await json('projects create --org acme-inc --name web --mode hybrid --cache on')
  t.match(web, { organization: 'acme-inc', name: 'web', mode: 'hybrid', cacheTtlMs: 60_000, status: 'active' })
  const app = await json(`projects create --org ${org.id} --name app --cache-ttl 10m`)
  t.match(app, { mode: 'credits', cacheTtlMs: 600_000 })
  t.match(await json('projects update app --cache on'), { cacheTtlMs: 600_000 }, 'for as long as before')
  t.match(await json('projects update app --cache off --mode api-keys'), { cacheTtlMs: null, mode: 'api-keys' })
  t.match(await json(`projects update ${app.id} --name site`), { name: 'site', mode: 'api-keys', cacheTtlMs: null })
  t.match(await json('projects update site --pass-parameters on'), { passesParameters: true })
  t.match(await json('projects update site --mode credits'), { passesParameters: true })
  const loose = await json('projects create --org acme-inc --name loose --pass-parameters on')
  t.match(loose, { passesParameters: true })
  t.match(await json('projects update loose --pass-parameters off'), { passesParameters: false })
  t.match(await json('projects archive site'), { status: 'archived' })
  t.match(await json('projects list --org acme-inc'), [
    { name: 'web' },
    { name: 'site', status: 'archived' },
    { name: 'loose' },
  ])
  t.match(await json('projects restore site'), { status: 'active' })
  t.match((await ctl('projects list')).stdout, /web +acme-inc +hybrid +60s +off +off +- +- +active +no/)

  const dev = await json('members add --org acme-inc --email dev@acme.example --role developer --projects web')
  t.match(dev, { email: 'dev@acme.example', role: 'developer', projects: ['web'], limits: [] })
  const limited = 'members update dev@acme.example --org acme-inc --projects all --limit 20 --limit-period month'
  t.match(await json(limited), { projects: null, limits: [{ period: 'month', limit: '20', spent: '0', zone: 'UTC' }] })
  t.match(
    (await ctl('members list --org acme-inc')).stdout,
    /dev@acme\.example +acme-inc +developer +all +0 of 20 a month/,
  )
  await json('members add --org acme-inc --email boss@acme.example --role owner')
  t.match(await json('members remove dev@acme.example --org acme-inc'), { email: 'dev@acme.example' })
  t.match(await json('members list'), [{ email: 'boss@acme.example' }])
})

t.test('rate limits are numbers, and none or zero removes them, in flags of keys and organizations', async t => {
  const { ctl, json } = await shell(t)
  t.match(await json('orgs create --name acme --rpd 9'), { rateLimits: { rpd: 9 } })
  await json('projects create --org acme --name web')
  const made = await json('keys create --project web --rpm 60 --tpm 100000 --concurrency 4 --on-limit use:acme-large')
  const use = { on_limit: { use: 'acme-large' } }
  t.strictSame(made.rateLimits, { rpm: 60, tpm: 100_000, concurrency: 4, ...use })
  t.match((await ctl('keys list')).stdout, 'rpm 60, tpm 100000, concurrency 4 (use:acme-large)')
  const { rateLimits } = await json(`keys update ${made.id} --rpm none --tpd 5000`)
  t.strictSame(rateLimits, { tpm: 100_000, concurrency: 4, ...use, tpd: 5000 })
  t.strictSame((await json(`keys show ${made.id}`)).rateLimits, rateLimits)
  t.strictSame((await json(`keys update ${made.id} --tpm 0 --concurrency 0`)).rateLimits, { ...use, tpd: 5000 })
})

t.test('keys have the flags and the answer that are documented', async t => {
  const { ctl, json, stores } = await shell(t)
  await json('orgs create --name acme')
  await json('projects create --org acme --name web')
  await json('members add --org acme --email dev@acme.example --role developer')
  const made = await json('keys create --project web --name ci --expires 30d --limit 5.00 --limit-period day')
  t.match(made, { id: String, key: /^mgw_[\w-]{43}$/, name: 'ci', project: 'web', organization: 'acme', kind: 'key' })
  t.match(made.limits, [{ period: 'day', limit: '5', spent: '0', zone: 'UTC', resetsAt: String }])
  t.match(await json('keys create --project web --kind publishable'), { key: /^mgw_pk_/, kind: 'publishable' })
  const before = Date.now()
  const session = await json('keys create --project web --kind session --created-by dev@acme.example')
  t.match(session, { key: /^mgw_es_/, kind: 'session', createdBy: 'dev@acme.example' })
  const began = Date.parse(String(session.expiresAt)) - 900_000
  t.ok(began >= before && began <= Date.now(), 'a session lasts a quarter of an hour')

  const zoned = `keys update ${made.id} --limit 7 --limit-period week --limit-zone Europe/Berlin`
  t.match(await json(zoned), { limits: [{ period: 'week', limit: '7', zone: 'Europe/Berlin' }] })
  t.match(await json(`keys update ${made.id} --limit 100`), {
    limits: [{ period: 'total', limit: '100' }, { period: 'week' }],
  })
  t.match((await ctl('keys list --project web')).stdout, /0 of 100 in all, 0 of 7 a week/)
  t.match(await json(`keys update ${made.id} --limit none`), { limits: [{ period: 'week' }] })
  const end = `keys update ${made.id} --limit none --limit-period week --expires never --name robot`
  t.match(await json(end), { limits: [], expiresAt: null, name: 'robot' })
  t.match(await json(`keys roll ${made.id}`), { name: 'robot', key: String })
  t.match(await json(`keys revoke ${session.id}`), { status: 'revoked' })
  const listed = await json<Tree[]>('keys list --project web')
  t.equal(listed.length, 4)
  t.notMatch(JSON.stringify(listed), String(made.key).slice(4, 20), 'no list shows a secret')
  t.equal((await stores.accounts.listKeys()).length, 4)
})

t.test('credits are booked, shown as decimals, refunded and discounted', async t => {
  const { ctl, json } = await shell(t)
  await json('orgs create --name acme')
  t.strictSame(await json('credits show --org acme'), { balance: '0', held: '0', used: '0' })
  const paid = 'credits add --org acme --amount 12.50 --reference bill-1'
  t.match(await json(paid), { kind: 'topup', amount: '12.5', reference: 'bill-1', organization: 'acme' })
  t.match(await json(paid), { amount: '12.5' }, 'the same payment')
  t.strictSame(await json('credits show --org acme'), { balance: '12.5', held: '0', used: '0' })
  t.match(await json('credits refund --org acme --amount 2.5 --note sorry'), { kind: 'refund', amount: '-2.5' })
  t.match(await json('credits entries --org acme'), [{ amount: '-2.5' }, { amount: '12.5' }])
  t.match((await ctl('credits entries --org acme')).stdout, /refund +-2\.5 +\S+ +sorry/)
  t.match((await ctl('credits show --org acme')).stdout, /^balance USD +10\n/)
  t.match(await json('credits discount --org acme --percent 12.5 --model large'), { percent: '12.5', model: 'large' })
  t.match(await json('credits discount --percent 5'), { organization: null, percent: '5' })
  t.match(await json('credits discounts --org acme'), [{ organization: null }, { organization: 'acme' }])
  t.match((await ctl('credits discounts')).stdout, /acme +all +large +12\.5\n/)
  await json('credits discount --percent 0')
  t.match(await json('credits discounts'), [{ organization: 'acme' }])
})

t.test('a discount on what does not exist yet is given with a warning', async t => {
  const { ctl, json } = await shell(t)
  await json('orgs create --name acme')
  for (const [line, names] of [
    ['--org acme --model no-such-model', ['no-such-model']],
    ['--model no-such-model --provider nobody', ['no-such-model', 'nobody']],
    ['--org acme --model acme-large --provider live-one', []],
    ['', []],
  ] as const) {
    const discount = `credits discount --percent 5 ${line}`
    t.match(await json(discount), { percent: '5', unknown: names }, line)
    const said = names.length === 0 ? '' : `warning: there is no ${names.join(', ')} yet\n`
    t.match(await ctl(discount), { code: 0, stdout: / 5\n$/, stderr: said }, line)
  }
})

t.test('plans are listed as declared, set and shown', async t => {
  const { ctl, json } = await shell(t)
  await json('orgs create --name acme')
  t.match(await json('plans list'), [
    { plan: 'lite', monthly: '87', weeklyPremium: '8.7', premiumFromInput: '5', premiumFromOutput: '15' },
    { plan: 'pro', monthly: '237', weeklyPremium: '28.44' },
    { plan: 'max', monthly: '537', weeklyPremium: '80.55' },
  ])
  t.strictSame(await json('plans show --org acme'), { plan: 'none' })
  t.match(await json('plans set --org acme --plan pro --overflow on'), {
    plan: 'pro',
    overflow: true,
    monthly: '237',
    used: '0',
    weeklyPremium: '28.44',
    premiumUsed: '0',
    premiumResetsAt: null,
    renewsAt: String,
  })
  t.match(await json('plans reset --org acme'), { plan: 'pro' })
  t.match((await ctl('plans show --org acme')).stdout, /^plan +pro\nused USD +0 of 237, renews \d{4}-\d\d-\d\d\n/)
  t.match((await ctl('plans list')).stdout, /lite +87 +8\.7 +5 +15\n/)
  t.match(await json('orgs list'), [{ plan: 'pro' }])
  t.strictSame(await json('plans set --org acme --plan none'), { plan: 'none' })
  t.match((await ctl('plans show --org acme')).stdout, /^no plan\n/)
})

t.test('usage is that of an organization, a project or a key', async t => {
  const { ctl, json, stores } = await shell(t)
  const spend = async (name: string, cost: bigint) => {
    await json(`orgs create --name ${name} --account open`)
    await json(`projects create --org ${name} --name web`)
    const { id } = await json(`keys create --project ${name}/web`)
    const { id: orgId } = (await json<Tree[]>('orgs list')).find(org => org.name === name)!
    const { id: projectId } = (await json<Tree[]>(`projects list --org ${name}`))[0]!
    const principal = { orgId, projectId, keyId: id, account: 'open', budgets: [] } as unknown as Principal
    const row = rowOf(principal, `request of ${name}`, { at: Date.now(), cost })
    const request = { ...row, id: row.id }
    const hold = await stores.ledger.hold({ id: name, request, principal, amount: 1n, expiresAt: Date.now() + 600_000 })
    if ('exhausted' in hold) throw new Error('refused')
    await stores.ledger.settle(hold, row)
    return { id, projectId }
  }
  const a = await spend('a', 5_000_000_000n)
  const b = await spend('b', 7_000_000_000n)
  const cost = async (flags: string) => (await json<{ totals: Tree }>(`usage ${flags}`)).totals.cost
  t.equal(await cost(''), '12')
  t.equal(await cost('--org a'), '5')
  t.equal(await cost(`--project ${b.projectId}`), '7')
  t.equal(await cost('--project b/web'), '7')
  t.equal(await cost(`--key ${a.id}`), '5')
  t.equal(await cost(`--key ${a.id} --org b`), '0')
  t.match(await json('usage --org b --group-by api_key'), {
    groupBy: 'api_key',
    groups: [{ id: b.id, name: String, cost: '7' }],
  })
  t.match(await json('usage --group-by project'), {
    groups: [
      { id: b.projectId, name: 'web', cost: '7' },
      { id: a.projectId, name: 'web', cost: '5' },
    ],
  })
  const today = new Date().toISOString().slice(0, 10)
  t.match(await json('usage --group-by day'), { groups: [{ id: today, requests: 2, cost: '12' }] })
  t.match(await json('usage --group-by end_user'), { groups: [{ id: 'unknown', requests: 2, cost: '12' }] })
  t.match(await json('usage --group-by tag:team'), { groupBy: 'tag:team', groups: [{ id: 'unknown', cost: '12' }] })
  t.match(await json('usage --group-by member'), { groups: [{ id: 'unknown', cost: '12' }] })
  const table = await ctl('usage --group-by project')
  t.match(table.stdout, /\nproject +name +requests .*\n\S+ +web +1 /)
  t.strictSame(await json('usage check'), { differences: [] })
})

t.test('long lists come whole, in parts of what the gateway answers at once', async t => {
  const { json, stores } = await shell(t)
  const { id: orgId } = await json('orgs create --name acme --account open')
  const { id: project } = await json('projects create --org acme --name web')
  const count = 1001
  for (let n = 0; n < count; n++) {
    await stores.accounts.createKey({ project: project as string, name: `key ${n}` })
    if (n < 501) await stores.credits.add({ organization: 'acme', amount: 1n, reference: `bill-${n}` }, 'ada')
  }
  const principalOf = (keyId: string) => ({ orgId, projectId: project, keyId }) as unknown as Principal
  // One key has so many apps of its own only.
  const rows = Array.from({ length: 501 }, (_, n) =>
    rowOf(principalOf(`k${n % 3}`), `r${n}`, { at: Date.now(), source: `app-${n}` }),
  )
  await Promise.all(rows.map(row => stores.ledger.record(row)))
  const keys = await json<Tree[]>('keys list --project web')
  t.strictSame(
    keys.map(({ name }) => name),
    Array.from({ length: count }, (_, n) => `key ${n}`),
  )
  t.equal(new Set((await json<Tree[]>('credits entries --org acme')).map(({ reference }) => reference)).size, 501)
  const { groups } = await json<{ groups: Tree[] }>('usage --group-by app')
  t.equal(new Set(groups.map(({ id }) => id)).size, 501)
})

t.test('the audit log says who changed what, and from what to what', async t => {
  const { ctl, json } = await shell(t)
  await json('orgs create --name acme', 'ada')
  await json('projects create --org acme --name web', 'bob')
  await json('projects update web --mode hybrid', 'bob')
  const { key } = await json('keys create --project web', 'eve')
  await ctl('orgs create --name acme', 'mallory')
  const entries = await json<Tree[]>('audit')
  t.match(entries, [
    { actor: 'eve', action: 'keys.create', organization: 'acme', before: null, after: { project: 'web' } },
    { actor: 'bob', action: 'projects.update', before: { mode: 'credits' }, after: { mode: 'hybrid' } },
    { actor: 'bob', action: 'projects.create' },
    { actor: 'ada', action: 'orgs.create', after: { name: 'acme' } },
  ])
  t.equal(entries.length, 4, 'what was refused changed nothing')
  t.notMatch(JSON.stringify(entries), String(key).slice(4), 'no secret is in it')
  t.match(await json(`audit --limit 1 --before ${entries[1]!.id}`), [{ action: 'projects.create' }])
  t.match((await ctl('audit --org acme')).stdout, /bob +projects\.update +acme +\S+ +mode: credits → hybrid\n/)
})

t.test('what cannot be is refused in one line, and what is misused shows how', async t => {
  const { ctl, json } = await shell(t)
  await json('orgs create --name acme')
  await json('projects create --org acme --name web')
  const refused: [line: string, message: RegExp][] = [
    ['orgs create --name acme', /An organization "acme" already exists/],
    ['projects create --org nope --name x', /There is no organization "nope"\. There are: acme \(id /],
    ['projects create --org acme --name x --cache-ttl 60', /"cacheTtl" must be a time such as 60s, 10m or 12h/],
    ['members add --org acme --email dev --role admin', /"email" must be an address such as/],
    ['members update nobody --org acme --role admin', /There is no member "nobody"/],
    ['keys create --project web --limit 5,00', /"limit" must be an amount of USD such as "12\.50"/],
    ['keys create --project web --limit 5 --limit-period day --limit-zone Mars/Olympus', /is not an IANA time zone/],
    ['keys create --project web --limit-period day', /"limit" is missing/],
    ['keys create --project web --created-by nobody@acme.example', /There is no member/],
    ['keys update nope --name x', /There is no key with the id "nope"/],
    ['keys update nope', /at least one field/],
    ['credits add --org acme --amount -5', /"amount" must be an amount of USD/],
    [
      'credits add --org acme --amount 1000000000',
      /"amount" must be an amount of USD .*, at most 999999999\.999999999\.$/m,
    ],
    ['credits add --org acme --amount 0', /"amount" must be more than zero/],
    ['credits refund --org acme --amount 1', /"acme" has 0 USD free, less than 1/],
    ['credits discount --percent 101', /"percent" must be at most 100/],
    ['plans set --org acme --overflow on', /has no plan; set one with/],
    ['plans reset --org acme', /has no plan; set one with/],
    ['usage --org nope', /There is no organization "nope"/],
  ]
  for (const [line, message] of refused) {
    const { code, stdout, stderr } = await ctl(line)
    t.match([code, stdout], [1, ''], line)
    t.match(stderr, message, line)
    t.equal(stderr.split('\n').length, 2, `${line}: one line`)
  }
  const misused: [line: string, message: RegExp][] = [
    ['orgs create', /required option '--name <name>' not specified/],
    ['projects create --name x', /required option '--org <org>'/],
    ['projects create --org acme --name x --mode free', /Allowed choices are credits, api-keys, hybrid/],
    ['members add --org acme --email a@b.example', /required option '--role <role>'/],
    ['keys create --project web --limit 5 --limit-period year', /Allowed choices are hour, day, week, month/],
    ['credits add --org acme', /required option '--amount <usd>'/],
    ['plans set --org acme --plan gold', /Allowed choices are lite, pro, max, none/],
    ['audit --limit x', /'--limit <count>' argument 'x' is invalid\. "x" is not a whole number above zero/],
    ['audit --before 0', /'--before <id>' argument '0' is invalid\. "0" is not a whole number above zero/],
  ]
  for (const [line, message] of misused) {
    const { code, stderr } = await ctl(line)
    t.equal(code, 2, line)
    t.match(stderr, message, line)
  }
})
