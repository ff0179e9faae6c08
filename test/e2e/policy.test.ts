/** Own keys, rules, compliance: who may call what, with whose credential, and who pays. */
import t from 'tap'
import { upstreamSecret } from '../helpers/gateway.ts'
import { isErrorBody } from '../helpers/invariants.ts'
import { readEvents } from '../helpers/sse.ts'
import { fingerprint } from '../helpers/upstream.ts'
import { bad, good, startTenancy, type Tenant, type Tree } from '../policy/tenancy.ts'

const { upstream, gateway, command, ctl, ctlJson, tenant, newKey, as, ask, addKey, balance, answer, group } =
  await startTenancy(t)

group('AT-15 in hybrid mode the own key is tried first and the platform pays when it fails', async t => {
  const hybrid = await tenant('hybrid', '10')
  const { id, fingerprint: hash } = await addKey(hybrid, bad, 'a', 'theirs')
  const { usage, metadata, status } = await answer(await ask(hybrid))
  t.equal(status, 200)
  t.match(metadata.routing, [
    {
      provider: 'a',
      status_code: 401,
      error_type: 'upstream_error',
      succeeded: false,
      credentialSource: 'byok',
      providerKeyId: id,
      providerKeyLabel: 'theirs',
      apiKeyHash: hash,
    },
    { provider: 'a', status_code: 200, succeeded: true, credentialSource: 'platform' },
  ])
  t.notOk('providerKeyId' in metadata.routing[1]!)
  t.notOk('providerKeyLabel' in metadata.routing[1]!)
  t.ok(usage.cost > 0)
  t.match(await balance(hybrid), { used: String(usage.cost) }, 'charged once, for the second attempt')
  const seen = (await upstream.record('a')).map(({ headers }) => headers.authorization)
  t.strictSame(seen, [`Bearer ${fingerprint(bad)}`, `Bearer ${fingerprint(upstreamSecret)}`])

  const streamed = await tenant('hybrid', '10')
  await addKey(streamed, bad)
  const { data } = await readEvents(await ask(streamed, 'test', { stream: true }))
  t.match(data.at(-1), {
    metadata: { routing: [{ credentialSource: 'byok', succeeded: false }, { credentialSource: 'platform' }] },
  })
  t.not((await balance(streamed)).used, '0')
})

group('what an own key answers is recorded and not charged, streamed or whole', async t => {
  for (const mode of ['hybrid', 'api-keys']) {
    const own = await tenant(mode)
    await addKey(own, good[0])
    const whole = await answer(await ask(own))
    t.match(whole, { status: 200, metadata: { routing: [{ credentialSource: 'byok', succeeded: true }] } }, mode)
    const { data } = await readEvents(await ask(own, 'test', { stream: true }))
    t.match(data.at(-1), { metadata: { routing: [{ credentialSource: 'byok' }] } })
    t.match(await balance(own), { balance: '0', used: '0' })
    const { totals } = await command<{ totals: Tree }>('usage', { organization: own.org })
    t.match(totals, { requests: 2, errors: 0 })
    t.equal(totals.byokCost, totals.cost)
    t.ok(Number(totals.cost) >= 2 * whole.usage.cost)
  }
  const poor = await tenant('hybrid')
  await addKey(poor, bad)
  t.match(
    await answer(await ask(poor)),
    { status: 402, error: { code: 'billing_error' } },
    'the platform wants credits',
  )
})

group('in the mode api-keys only own keys are shown to a provider', async t => {
  const own = await tenant('api-keys', '10')
  t.match(await answer(await ask(own)), {
    status: 400,
    error: { code: 'no_provider_key', param: 'model', message: /add one for a or b, or set the mode to "hybrid"/ },
  })
  await addKey(own, good[0], 'b')
  t.match(await answer(await ask(own)), { status: 200, metadata: { used_provider: 'b' } })
  t.match(await answer(await ask(own, 'a/test')), { status: 400, error: { code: 'no_provider_key' } })
  await addKey(own, bad, 'a')
  const failed = await answer(await ask(own, 'a/test'))
  t.match(failed, { status: 502 })
  t.notMatch(JSON.stringify(failed), bad)
  const credits = await tenant('credits', '10')
  await addKey(credits, good[0], 'bare')
  t.match(await answer(await ask(credits, 'bare')), { status: 404, error: { code: 'model_not_available' } })
  t.ok(
    (await upstream.record()).every(({ headers }) => headers.authorization !== `Bearer ${fingerprint(upstreamSecret)}`),
  )
})

group(
  'AT-18 rules of the organization and of the key are refused with the reason, and the listing follows them',
  async t => {
    const one = await tenant('credits', '10')
    const other = await newKey(one.project)
    const listed = async (key: Pick<Tenant, 'key'>, query = '') => {
      const response = await gateway.get(`/v1/models${query}`, as(key))
      t.match(response.headers.get('vary'), /authorization/)
      t.equal(response.headers.get('cache-control'), 'private')
      return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id)
    }
    const everything = ['test', 'small', 'bare']
    t.strictSame(await listed(one), ['test', 'small'], 'nobody has a credential for "bare"')
    t.strictSame(await listed(one, '?include_restricted=true'), everything)
    const rule = await ctlJson(t, ['iam', 'add', '--org', one.org, '--type', 'deny_models', '--models', 'small,later'])
    t.match(rule, { type: 'deny_models', value: { models: ['small', 'later'] }, key: null, unknown: ['later'] })
    const denied = await answer(await ask(one, 'small'))
    t.match(denied, {
      status: 403,
      error: {
        code: 'permission_denied',
        message: `Access denied: Model small is in the denied models list (rule ${rule.id} of the organization).`,
      },
    })
    t.ok(isErrorBody({ error: denied.error }))
    t.strictSame(await listed(one), ['test'])
    t.strictSame(await listed(one, '?include_restricted=true'), everything)

    await ctlJson(t, ['iam', 'add', '--key', other.keyId, '--type', 'allow_providers', '--providers', 'b'])
    t.strictSame(await listed(other), ['test'])
    t.strictSame(await listed(other, '?mapped=true'), ['b/test'])
    t.strictSame(await listed(one, '?mapped=true'), ['a/test', 'b/test'], 'the first key is as it was')
    t.match(await answer(await ask(other)), { status: 200, metadata: { used_provider: 'b' } })
    t.match(await answer(await ask(other, 'a/test')), {
      status: 403,
      error: { message: /Provider a is not in the allowed/ },
    })
    const { status, error } = await answer(
      await gateway.post(
        '/v1/messages',
        { model: 'a/test', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] },
        as(other),
      ),
    )
    t.match([status, error], [403, { type: 'permission_error', message: /Provider a/ }], 'on every surface')
    const rolled = await command<{ id: string; key: string }>('keys.roll', { id: other.keyId })
    t.strictSame(await listed(rolled), ['test'], 'a rolled key keeps its rules')

    const [first] = await command<{ id: string }[]>('iam.list', { organization: one.org })
    t.match(await ctl(['iam', 'update', first!.id, '--status', 'inactive']), { code: 0, stdout: /is inactive/ })
    t.strictSame(await listed(one), ['test', 'small'])
    t.match(await ctl(['iam', 'list', '--org', one.org]), { code: 0, stdout: /deny_models +small, later +inactive/ })
    t.match(await ctl(['iam', 'remove', first!.id]), { code: 0 })
    t.match(await ctl(['iam', 'add', '--type', 'deny_models', '--models', 'x']), { code: 2, stderr: /--org or --key/ })
    t.match(await ctl(['iam', 'add', '--org', one.org, '--type', 'deny_models', '--providers', 'x']), {
      code: 1,
      stderr: /takes models, not providers/,
    })
  },
)

group('rules of prices, addresses and compliance hold too', async t => {
  const one = await tenant('credits', '10')
  const refused = async (said: RegExp, model = 'test') =>
    t.match(await answer(await ask(one, model)), { status: 403, error: { code: 'permission_denied', message: said } })
  const drop = async (id: unknown) => command('iam.remove', { id, organization: one.org })
  const free = await ctlJson(t, ['iam', 'add', '--org', one.org, '--type', 'allow_pricing', '--pricing', 'free'])
  await refused(/Only free models are allowed/)
  t.match(await answer(await ask(one, 'small')), { status: 200 })
  await drop(free.id)
  const dear = await ctlJson(t, ['iam', 'add', '--org', one.org, '--type', 'deny_pricing', '--max-output-price', '1.5'])
  await refused(/Model output price exceeds maximum allowed \(2 > 1.5 USD per million tokens\)/)
  await drop(dear.id)
  const only = (range: string) =>
    ctlJson(t, ['iam', 'add', '--key', one.keyId, '--type', 'allow_ip_cidrs', '--ip-cidrs', range])
  const away = await only('192.0.2.0/24')
  await refused(/IP address of the caller is not in the allowed ranges/)
  const forged = { ...as(one), 'x-forwarded-for': '192.0.2.1' }
  t.equal((await gateway.chat('Hi', forged)).status, 403, 'a header is not believed')
  t.equal((await gateway.get('/v1/models', as(one))).status, 403)
  await drop(away.id)
  const home = await only('127.0.0.0/8')
  t.equal((await ask(one)).status, 200)
  await drop(home.id)

  const policy = await ctlJson(t, ['compliance', 'set', '--org', one.org, '--block-training', 'on', '--gdpr', 'on'])
  t.match(policy, { policy: { noTraining: true, gdpr: true, iso27001: false } })
  t.match(await answer(await ask(one)), { status: 200, metadata: { used_provider: 'a' } })
  await refused(
    /^This request was blocked by your organization's provider compliance policy\..* for b\/test .*: b may train/,
    'b/test',
  )
  t.match(await ctl(['compliance', 'show', '--org', one.org]), { code: 0, stdout: /no training +on\n/ })
  t.match(await ctlJson(t, ['compliance', 'clear', '--org', one.org]), { policy: null })
  t.equal((await ask(one, 'b/test')).status, 200)
})

group(
  'AT-12 no cached answer reaches a key that could not have got it, or is replayed under zero retention',
  async t => {
    const one = await tenant('credits', '10', { cache: 'on' })
    const other = await newKey(one.project)
    t.match(await answer(await ask(one)), { status: 200 })
    const hit = await ask(other)
    t.equal(hit.headers.get('x-gateway-cache'), 'HIT')
    await hit.text()
    await command('iam.add', { key: other.keyId, type: 'deny_models', models: ['test'] })
    t.equal((await ask(other)).status, 403)
    const still = await ask(one)
    t.equal(still.headers.get('x-gateway-cache'), 'MISS', 'another policy, other answers')
    await still.text()
    await command('projects.update', { project: one.project, mode: 'hybrid' })
    t.equal((await ask(one)).headers.get('x-gateway-cache'), 'MISS', 'whose key it is counts as well')
    await command('compliance.set', { organization: one.org, noLogging: true, allowedProviders: ['a'] })
    await command('compliance.set', { organization: one.org, noLogging: false })
    await command('compliance.set', { organization: one.org, noLogging: true })
    const refused = await answer(await ask(one))
    t.match(refused, { status: 403, error: { message: /a may keep prompts/ } })
  },
)

group('rules of a member narrow all keys that it made, and no others', async t => {
  const one = await tenant('credits', '10')
  await command('members.add', { organization: one.org, email: 'ada@x.example', role: 'developer' })
  const hers = await command<{ key: string; id: string }>('keys.create', {
    project: one.project,
    createdBy: 'ada@x.example',
  })
  const args = ['iam', 'add', '--org', one.org, '--member', 'ada@x.example', '--type', 'deny_models']
  const rule = await ctlJson(t, [...args, '--models', 'small'])
  t.match(rule, { member: 'ada@x.example', key: null })
  t.match(await answer(await ask(hers, 'small')), {
    status: 403,
    error: { message: `Access denied: Model small is in the denied models list (rule ${rule.id} of the member).` },
  })
  t.equal((await ask(hers)).status, 200)
  t.equal((await ask(one, 'small')).status, 200)
  await ctlJson(t, ['iam', 'add', '--key', hers.id, '--type', 'allow_models', '--models', 'small,test'])
  t.equal((await ask(hers, 'small')).status, 403, 'a key cannot widen what its member may')
  const listed = (await (await gateway.get('/v1/models', as(hers))).json()) as { data: { id: string }[] }
  t.strictSame(
    listed.data.map(({ id }) => id),
    ['test'],
  )
  t.match(await ctl(['iam', 'list', '--org', one.org, '--member', 'ada@x.example']), {
    code: 0,
    stdout: /ada@x\.example +- +deny_models +small +active/,
  })
})

group('an own key is for some models and for so much money; what it is not for, others serve', async t => {
  const usage = { prompt: 3, completion: 10 }
  // 0.000023 USD, held and charged.
  const more = { max_tokens: usage.completion }
  await upstream.script('a', [{ usage }])
  const own = await tenant('hybrid', '10')
  const sourceOf = async (who: Tenant) => {
    const { status, metadata, error } = await answer(await ask(who, 'test', more))
    return error
      ? `${status} ${error.message}`
      : metadata.routing.map(each => each.providerKeyLabel ?? 'platform').join()
  }
  const add = ['provider-keys', 'add', '--org', own.org, '--provider', 'a', '--label', 'small']
  const { id } = await ctlJson(t, [...add, '--limit', '0.00003'], good[0])
  await ctlJson(t, ['provider-keys', 'add', '--org', own.org, '--provider', 'a', '--label', 'more'], good[1])
  t.strictSame([await sourceOf(own), await sourceOf(own)], ['small', 'more'], 'the next own key, when one is used up')
  t.match(await balance(own), { used: '0' })
  const [spent] = await ctlJson<Tree[]>(t, ['provider-keys', 'list', '--org', own.org])
  t.match(spent, { id, models: null, limits: [{ period: 'total', limit: '0.00003', spent: '0.000023' }] })
  await ctlJson(t, ['provider-keys', 'update', id as string, '--limit', '0.00005'])
  t.strictSame([await sourceOf(own), await sourceOf(own)], ['small', 'more'], 'a raised limit counts what was spent')

  const lone = await tenant('hybrid', '10')
  const lones = ['provider-keys', 'add', '--org', lone.org, '--provider', 'a', '--label', 'lone']
  const key = await ctlJson(t, [...lones, '--limit', '0.00003', '--limit-period', 'month'], good[0])
  t.strictSame([await sourceOf(lone), await sourceOf(lone)], ['lone', 'platform'])
  t.match(await balance(lone), { used: '0.000023' })
  await command('projects.update', { project: lone.project, mode: 'api-keys' })
  const refused = /^402 The organization's key for the provider reached its usage limit\. It resets at \d{4}-/
  t.match(await sourceOf(lone), refused)
  const update = ['provider-keys', 'update', key.id as string, '--org', lone.org]
  await ctlJson(t, [...update, '--limit', 'none', '--limit-period', 'month', '--models', 'small,later'])
  t.match(await sourceOf(lone), /^400 .*add one for a or b/)
  t.match(await answer(await ask(lone, 'small', more)), { status: 200 })
  t.match(await ctl([...update, '--models', 'later']), { code: 0, stderr: /there is no later yet/ })
  await ctlJson(t, [...update, '--models', 'a/test'])
  t.equal(await sourceOf(lone), 'lone')
  await ctlJson(t, [...update, '--models', 'all'])
  t.match(await ctl(update), { code: 1, stderr: /at least one field/ })
  t.match(await ctl([...update.slice(0, 3), '--org', own.org, '--label', 'x']), { code: 1, stderr: /no provider key/ })
})
