/** Own providers and secrets: nothing of an organization is ever seen by another one, or by anybody at all. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fingerprint } from '../helpers/upstream.ts'
import { bad, good, startTenancy, type Tree } from '../policy/tenancy.ts'

const { upstream, gateway, command, ctl, ctlJson, tenant, as, ask, balance, answer, group } = await startTenancy(t)

const manifest = (id: string, prefix: string) => `
provider: ${id}
name: ${id}
base_url: ${upstream.url(prefix)}
auth: { scheme: bearer }
wires: { chat: openai.chat }
models:
  - { model: ${id}-7b, id: theirs, supports: [streaming] }
  - { model: test, id: test-of-${id}, supports: [streaming, tools, vision, json_output] }
`

group('two organizations never see anything of each other', async t => {
  const [a, b] = [await tenant('hybrid', '10'), await tenant('hybrid', '10')]
  await gateway.writeFile('mine.yaml', manifest('mine', 'mine'))
  t.match(await ctlJson(t, ['models', 'custom', 'add', 'mine.yaml', '--org', a.org]), {
    provider: 'mine',
    models: ['mine-7b', 'test'],
  })
  t.match(
    await answer(await ask(a, 'mine-7b')),
    { status: 404, error: { code: 'model_not_available' } },
    'its key is missing',
  )
  const added = ['provider-keys', 'add', '--org', a.org, '--provider', 'mine', '--label', 'secret-label']
  const { id: keyId } = await ctlJson(t, added, `${good[1]}\n`)
  const rule = await command('iam.add', { organization: a.org, type: 'deny_models', models: ['small'] })

  const served = await answer(await ask(a, 'mine-7b'))
  t.match(served, {
    status: 200,
    metadata: { used_provider: 'mine', routing: [{ credentialSource: 'byok', providerKeyId: keyId }] },
  })
  t.match(await balance(a), { used: '0' })
  t.match(await answer(await ask(a, 'mine/test')), { status: 200, metadata: { used_provider: 'mine' } })
  t.match(await answer(await ask(b)), { status: 200, metadata: { used_provider: 'a' } })

  const theirs = [keyId, String(rule.id), 'mine', 'secret-label', good[1]] as string[]
  const nothingOfThem = (where: string, text: string) => {
    for (const one of theirs)
      t.notOk(text.includes(`"${one}"`) || text.includes('mine-7b'), `nothing of "${one}" in ${where}`)
  }
  for (const model of ['mine-7b', 'mine/mine-7b', 'mine/test', 'mine/theirs', 'theirs', 'custom/mine-7b']) {
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const body = { model, max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }
      const response = await gateway.post(path, body, as(b))
      t.equal(response.status, 404, `${path} ${model}`)
      await response.text()
    }
  }
  for (const query of [
    '',
    '?include_restricted=true',
    '?mapped=true',
    '?include_deactivated=true&include_restricted=1',
  ]) {
    nothingOfThem(`the listing ${query}`, await (await gateway.get(`/v1/models${query}`, as(b))).text())
    const own = await (await gateway.get(`/v1/models${query}`, as(a))).text()
    t.equal(own.includes('mine-7b'), !query.includes('include_restricted'), `own models in ${query}`)
  }
  const anonymous = await fetch(`${gateway.url}/v1/models`)
  nothingOfThem('the public listing', await anonymous.text())
  nothingOfThem("the other's answer", JSON.stringify(await answer(await ask(b))))
  nothingOfThem("the other's key", await (await gateway.get('/v1/key', as(b))).text())

  const commands: [string, object, status?: number][] = [
    ['provider-keys.list', { organization: b.org }],
    ['provider-keys.remove', { organization: b.org, id: keyId }, 404],
    ['provider-keys.update', { organization: b.org, id: keyId, label: 'mine' }, 404],
    ['iam.list', { organization: b.org }],
    ['iam.list', { organization: b.org, key: a.keyId }, 404],
    ['iam.add', { organization: b.org, key: a.keyId, type: 'deny_models', models: ['x'] }, 404],
    ['iam.update', { organization: b.org, id: rule.id, status: 'inactive' }, 404],
    ['iam.remove', { organization: b.org, id: rule.id }, 404],
    ['compliance.show', { organization: b.org }],
    ['models.custom.list', { organization: b.org }],
    ['models.custom.remove', { organization: b.org, provider: 'mine' }, 404],
    ['provider-keys.add', { organization: b.org, provider: 'mine', secret: 'x' }, 404],
    ['audit', { organization: b.org, limit: 1000 }],
    ['models.list', {}],
    ['providers.list', {}],
  ]
  for (const [name, args, status = 200] of commands) {
    const response = await gateway.admin('POST', `/commands/${name}`, args)
    t.equal(response.status, status, `${name} ${JSON.stringify(args)}`)
    if (status === 200) nothingOfThem(name, await response.text())
    else await response.text()
  }

  t.ok(await command('models.custom.add', { organization: b.org, manifest: manifest('mine', 'other') }))
  await command('provider-keys.add', { organization: b.org, provider: 'mine', secret: good[0] })
  t.equal((await ask(b, 'mine-7b')).status, 200)
  const hosts = (await upstream.record()).map(({ prefix, headers }) => [prefix, headers.authorization])
  t.strictSame(
    hosts.filter(([prefix]) => prefix === '/other'),
    [['/other', `Bearer ${fingerprint(good[0])}`]],
    'the same name is another provider with another key',
  )
  t.ok(hosts.every(([prefix, key]) => prefix === '/mine' || key !== `Bearer ${fingerprint(good[1])}`))
  t.match(await ctl(['models', 'custom', 'list', '--org', a.org]), { code: 0, stdout: /mine +http.* +mine-7b, test/ })
  t.match(await ctl(['models', 'custom', 'remove', 'mine', '--org', a.org]), { code: 0 })
  t.equal((await ask(a, 'mine-7b')).status, 404)
})

group('a manifest that reaches inside is refused, with its place', async t => {
  const one = await tenant()
  const add = (text: string) => ctl(['models', 'custom', 'add', '--org', one.org], text)
  t.match(await add(manifest('a', 'x')), {
    code: 1,
    stderr: /^manifest:2:11: "a" is the id of a shared provider/,
  })
  t.match(await add(manifest('x', 'x').replace('name: x', `name: "\${GATEWAY_ADMIN_TOKEN}"`)), {
    code: 1,
    stderr: /^manifest:3:7: references/,
  })
  t.match(await add(''), { code: 1, stderr: /no manifest on standard input/ })
})

group('a long manifest is read in a thread, and refused with its place', async t => {
  const one = await tenant()
  const add = (manifest: string) =>
    gateway.admin('POST', '/commands/models.custom.add', { organization: one.org, manifest })
  const models = (count: number) =>
    Array.from(
      { length: count },
      (_, i) => `  - { model: long-${i}, id: their-name-of-${i}, supports: [streaming] }\n`,
    ).join('')
  const kept = await add(manifest('long', 'x') + models(198))
  t.equal(kept.status, 200)
  t.equal(((await kept.json()) as { models: string[] }).models.length, 200)
  const rows: [says: string, text: string, message: RegExp][] = [
    ['too many models', manifest('long', 'x') + models(199), /^manifest:8:3: expected at most 200 models/],
    [
      '8,000 of them',
      `${manifest('long', 'x')}${'  - {}\n'.repeat(8000)}`,
      /^manifest:8:3: expected at most 200 models/,
    ],
    ['a fault of the text', `${manifest('long', 'x')}${models(100)}\t]`, /^manifest:110:2: Unexpected/],
    ['a wide value', `${manifest('long', 'x')}wide: [${'{},'.repeat(9000)}]`, /^manifest:10:1: unknown key/],
    [
      'a wider one',
      `${manifest('long', 'x')}wide: [${'{},'.repeat(18_000)}]`,
      /^manifest:10:\d+: expected at most 10000 v/,
    ],
  ]
  for (const [says, text, message] of rows) {
    const refused = await add(text)
    t.equal(refused.status, 400, says)
    t.match(((await refused.json()) as { error: { message: string } }).error.message, message, says)
  }
  const many = await Promise.all(Array.from({ length: 12 }, () => add(manifest('long', 'x') + models(198))))
  t.strictSame(new Set(many.map(({ status }) => status)), new Set([200]), 'more than there are threads')
  for (const response of many) await response.text()
})

group('secrets are read from standard input and shown nowhere; master keys can be changed while all runs', async t => {
  const own = await tenant('api-keys')
  const args = ['provider-keys', 'add', '--org', own.org, '--provider', 'a']
  t.match(await ctl(args), { code: 1, stderr: /no secret on standard input/ })
  const human = await ctl([...args, '--label', 'first'], `${good[0]}\n`)
  t.match(human, { code: 0, stdout: /^kept \w+ \(first\) for a, fingerprint [0-9a-f]{7}\n$/ })
  const machine = await ctlJson(t, args, good[1])
  t.match(machine, { provider: 'a', label: 'default', fingerprint: /^[0-9a-f]{7}$/, keyVersion: /^[0-9a-f]{8}$/ })
  t.match(await ctl(['provider-keys', 'list', '--org', own.org]), { code: 0, stdout: /first +[0-9a-f]{7}/ })
  t.equal((await ask(own)).status, 200)

  const turned = await ctlJson<{ keyVersion: string; reencrypted: number }>(t, [
    'provider-keys',
    'reencrypt',
    '--new-key',
  ])
  t.ok(turned.reencrypted >= 2)
  t.not(turned.keyVersion, machine.keyVersion)
  t.equal((await ask(own)).status, 200)
  t.match(await ctlJson(t, ['provider-keys', 'reencrypt']), { reencrypted: 0, unreadable: [] })
  t.match(await ctl(['provider-keys', 'reencrypt']), { code: 0, stdout: /^stored responses +0 +0$/m })
  const listed = await ctlJson<Tree[]>(t, ['provider-keys', 'list'])
  t.ok(listed.every(({ keyVersion }) => keyVersion === turned.keyVersion))

  const places: Record<string, string> = {
    stdout: gateway.stdout(),
    stderr: gateway.stderr(),
    metrics: await gateway.metrics(),
    config: await (await gateway.admin('GET', '/config')).text(),
    audit: JSON.stringify(await command('audit', { limit: 1000 })),
    keys: JSON.stringify(listed),
    shown: JSON.stringify([human, machine]),
  }
  for (const name of readdirSync(join(gateway.dir, 'data'))) {
    places[name] = readFileSync(join(gateway.dir, 'data', name)).toString('latin1')
  }
  t.match(Object.keys(places).sort().join(), /gateway\.db.*master\.key/)
  for (const [where, text] of Object.entries(places)) {
    for (const secret of [...good, bad]) t.notOk(text.includes(secret), `no secret in ${where}`)
  }

  await gateway.restart()
  t.equal((await ask(own)).status, 200, 'after a restart the keys still open')
})
