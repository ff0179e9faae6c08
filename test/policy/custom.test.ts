/** Providers that an organization declares for itself: what is taken of a manifest, and what becomes of it. */
import t from 'tap'
import { type CustomOptions, linkCustom, readManifest } from '../../src/config/custom.ts'
import { ConfigError } from '../../src/config/error.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import { resolve } from '../../src/routing/resolve.ts'
import { fakeRegistries } from '../config/kit.ts'
import { cpuMeter } from '../helpers/cpu.ts'
import { catalogOf } from './kit.ts'

const { wires, operations } = fakeRegistries()
const options: CustomOptions = { wires, operations, allowPrivate: false }
const shared = catalogOf([
  { provider: 'acme', model: 'large', aliases: ['l'], price: ['1', '2'] },
  { provider: 'best', model: 'large', price: ['3', '4'] },
  { provider: 'best', model: 'small' },
])

const text = (changes: Record<string, string> = {}) =>
  Object.entries({
    provider: 'mine',
    name: 'Mine AI',
    base_url: 'https://llm.mine.example/v1',
    auth: '{ scheme: bearer }',
    wires: '{ chat: openai.chat }',
    models: '[{ model: large, id: their-large, pricing: { prompt: "1", completion: "2" } }, { model: mine-7b }]',
    ...changes,
  })
    .map(([key, value]) => `${key}: ${value}\n`)
    .join('')
const read = (changes?: Record<string, string>, given: Partial<CustomOptions> = {}, catalog = shared) =>
  readManifest('org-1', text(changes), () => catalog, { ...options, ...given })
const manifest = async (...given: Parameters<typeof read>) => (await read(...given)).manifest
const refusal = (reading: Promise<unknown>): Promise<unknown> =>
  reading.then(
    () => 'nothing was refused',
    (thrown: unknown) => thrown,
  )

function link(manifests: readonly string[], from: Catalog = shared): { catalog: Catalog; warned: string[] } {
  const warned: string[] = []
  const catalog = linkCustom('org-1', manifests, from, options, (provider, why) => warned.push(`${provider}: ${why}`))
  return { catalog, warned }
}

t.test('a manifest is kept as it was written, in YAML or in JSON', async t => {
  const { provider, models, manifest: kept } = await read()
  t.strictSame([provider, models], ['mine', ['large', 'mine-7b']])
  t.match(JSON.parse(kept), { provider: 'mine', auth: { scheme: 'bearer' }, base_url: 'https://llm.mine.example/v1' })
  t.strictSame(await readManifest('org-1', kept, () => shared, options), { provider, models, manifest: kept })
  t.notMatch(kept, 'secret')
})

t.test('faults name their place, and of a secret nothing is repeated', async t => {
  const rows: [changes: Record<string, string>, said: RegExp][] = [
    [{ provider: 'acme' }, /^manifest:1:11: "acme" is the id of a shared provider/],
    [{ provider: 'custom' }, /^manifest:1:11: "custom" is reserved/],
    [{ provider: 'Mine' }, /^manifest:1:11: expected a provider id/],
    [{ models: '[{ model: l }]' }, /^manifest:6:19: "l" is an alias of "large"; write that/],
    [{ models: '[{ model: a }, { model: a }]' }, /is mapped twice/],
    [{ models: `[${Array.from({ length: 201 }, (_, n) => `{ model: m-${n} }`).join(', ')}]` }, /at most 200 models/],
    [
      { auth: '{ scheme: bearer, secret: sk-canary-1234567890 }' },
      /^manifest:4:33: a manifest must not contain a secret/,
    ],
    [{ auth: '{ scheme: bearer, secret: [sk-canary-1234567890] }' }, /must not contain a secret/],
    [{ auth: '{ scheme: header }' }, /needs the key "header"/],
    [{ auth: '{ scheme: none, header: x }' }, /does not use the key "header"/],
    [{ auth: `{ scheme: bearer, secret: "\${OPENAI_API_KEY}" }` }, /references such as .* are not resolved/],
    [{ name: `"\${file:/etc/passwd}"` }, /^manifest:2:7: references/],
    [{ headers: '{ Authorization: x }' }, /the header "Authorization" cannot be set by a manifest/],
    [{ headers: '{ x-api-key: x }' }, /cannot be set by a manifest/],
    [{ headers: '{ Host: internal }' }, /cannot be set by a manifest/],
    [{ wires: '{ chat: openai.caht }' }, /unknown wire "openai.caht"; did you mean "openai.chat"/],
    [{ wires: '{}' }, /expected at least one operation/],
    [{ shoe: '1' }, /unknown key "shoe"/],
    [{ models: 'open' }, /^manifest:6:9: expected a list of models: "open" is for the operator/],
    [{ open: '{}' }, /only the operator of the gateway can set "open"/],
    [
      { auth: '{ scheme: gcp-oauth, source: default }' },
      /^manifest:4:28: only the operator of the gateway can set "source"/,
    ],
    [{ auth: '{ scheme: aws-sigv4, region: a, source: default, profile: b }' }, /only the operator/],
    [{ allow_http: 'true' }, /only the operator of the gateway can set "allow_http"/],
    [{ egress: '{ proxy: none }' }, /only the operator of the gateway can set "egress"/],
    [{ base_url: 'https://{region}.mine.example/v1' }, /is not allowed in a custom provider's address/],
    [{ base_url: 'https://user:pass@mine.example/v1' }, /an address must not contain a credential/],
    [{ name: `"${'x'.repeat(65_536)}"` }, /at most 65536 characters/],
  ]
  for (const [changes, said] of rows) {
    const error = await refusal(read(changes))
    t.ok(error instanceof ConfigError, JSON.stringify(changes).slice(0, 80))
    t.match(String(error), said)
    t.notMatch(String(error), 'sk-canary')
  }
})

t.test('a manifest that is too long is not parsed, not even for the place of its first value', async t => {
  const long = `# Ours\n${text({ name: `"${'x'.repeat(65_536)}"` })}`
  const error = await refusal(readManifest('org-1', long, () => shared, options))
  t.ok(error instanceof ConfigError)
  t.match(String(error), /^manifest:1:1: expected at most 65536 characters/)
})

t.test('a manifest is bounded by what is stored of it, whatever its aliases stand for', async t => {
  const long = (length: number) => `"${'x'.repeat(length)}"`
  const times = (count: number, entry: (n: number) => string) =>
    `[${Array.from({ length: count }, (_, n) => entry(n))}]`
  const list = times(199, () => 'a')
  const rows: [what: string, changes: Record<string, string>, said: RegExp][] = [
    [
      'a long text',
      { headers: `{ a: &a ${long(30_000)}, b: *a, c: *a, d: *a, e: *a }` },
      /^manifest:7:18: expected at most 131072 characters of JSON, with what aliases stand for/,
    ],
    ['long keys', { voices: `[&a { ${long(30_000)}: 1 }, *a, *a, *a, *a]` }, /at most 131072 characters of JSON/],
    ['aliases of aliases', { x: `[&a ${list}, &b [${'*a,'.repeat(9)}], ${'*b,'.repeat(6)}]` }, /at most 10000 values/],
    ['many values', { x: `[${'1,'.repeat(10_001)}]` }, /^manifest:7:\d+: expected at most 10000 values/],
  ]
  for (const [what, { models = '[{ model: a }]', ...changes }, said] of rows)
    t.match(String(await refusal(read({ ...changes, models }))), said, what)
  const price = (n: number) => (n === 0 ? '&p { prompt: "1", completion: "2" }' : n > 100 ? '{ prompt: "1" }' : '*p')
  const models = times(200, n => `{ model: m-${n}, context_length: 1000, pricing: ${price(n)} }`)
  t.equal((await read({ models })).models.length, 200, 'an honest one with aliases')
})

t.test('what is stored already and is too long is left out unread', async t => {
  const good = await manifest()
  const { catalog, warned } = link([`{"name":"x","provider":"long","x":"${'x'.repeat(131_072)}`, good])
  t.strictSame(warned, ['long: it has more than 131072 characters; declare a shorter one'])
  t.ok(catalog.providers.has('mine'))
})

t.test('a manifest whose address is full of slashes takes no longer than another', async t => {
  const used = cpuMeter()
  t.ok(await read({ base_url: `https://llm.mine.example${'/'.repeat(60_000)}v1` }))
  t.ok(used() < 1000, `${used()} ms of CPU`)
})

t.test('an address that is not public is refused in every spelling, unless the operator allows it', async t => {
  const hosts = `127.0.0.1 127.1 2130706433 0x7f.1 0177.0.0.1 0.0.0.0 127.0.0.1. localhost api.localhost [::1] [::ffff:127.0.0.1]
    [64:ff9b::7f00:1] [fe80::1] [fd00:ec2::254] 100.64.0.1 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254
    metadata.google.internal printer.local intranet 127.0.0.1.nip.io 127-0-0-1.sslip.io １２７.０.０.１`
  for (const host of hosts.split(/\s+/)) {
    for (const base_url of [`https://${host}/v1`, `https://${host}:8443/v1`, `http://${host}/v1`]) {
      t.match(String(await refusal(read({ base_url }))), /expected "https:\/\/" and a public host/, base_url)
    }
  }
  t.match(String(await refusal(read({ base_url: 'http://llm.mine.example/v1' }))), /public host/)
  t.match(String(await refusal(read({ base_url: 'https://llm.mine.example@127.0.0.1/v1' }))), /public host/)
  for (const base_url of ['https://llm.mine.example:8443/v1', 'https://93.184.216.34/v1'])
    t.ok(await read({ base_url }))
  t.ok(await read({ base_url: 'http://127.0.0.1:8000/v1' }, { allowPrivate: true }))
  t.match(
    String(await refusal(read({ base_url: 'http://llm.mine.example/v1' }, { allowPrivate: true }))),
    /is not a loopback address/,
  )
})

t.test("an organization's catalogue is the shared one with its own offers in it", async t => {
  const { catalog, warned } = link([
    await manifest(),
    await manifest({ provider: 'more', models: '[{ model: mine-7b }]' }),
  ])
  t.strictSame(warned, [])
  const offers = (from: Catalog) =>
    [...from.models].map(([id, { mappings }]) => `${id}: ${mappings.map(({ provider }) => provider.id)}`)
  t.strictSame(offers(catalog), ['large: acme,best,mine', 'small: best', 'mine-7b: mine,more'])
  t.strictSame(offers(shared), ['large: acme,best', 'small: best'], 'the shared one stays as it was')
  const large = catalog.models.get('large')!
  t.ok(large.mappings.every(({ model }) => model === large))
  t.equal(large.mappings[0]!.provider, shared.providers.get('acme'))
  t.match(large.mappings[2], {
    externalId: 'their-large',
    provider: { id: 'mine', owner: 'org-1', credentials: [], auth: { scheme: 'bearer' } },
  })
  t.match(catalog.models.get('mine-7b'), { name: 'mine-7b', family: 'mine', input: ['text'], output: ['text'] })
  t.equal(catalog.models.get('small'), shared.models.get('small'))
  t.match(resolve(catalog, 'mine/their-large'), { provider: { id: 'mine' }, model: { id: 'large' } })
  for (const name of ['l', 'mine/l', 'acme/l']) {
    const wanted = resolve(catalog, name)
    t.equal(wanted.kind === 'model' && wanted.model, large, `${name}: an alias stands for what the id does`)
  }
  t.throws(() => resolve(shared, 'mine/mine-7b'), { message: /does not exist/ })
})

t.test('the output of a model follows from the wires of its provider, its input from what it supports', async t => {
  const embeddings = { op: 'embeddings', wire: 'openai.embeddings' }
  const more = { wires: new Map([...wires, ['openai.embeddings', embeddings as never]]) }
  const models = '[{ model: a }, { model: b, supports: [vision] }]'
  const given = { ...options, ...more }
  const kept = (changes: Record<string, string>) => manifest(changes, given)
  const both = linkCustom(
    'org-1',
    [
      await kept({ models }),
      await kept({ provider: 'vectors', wires: '{ embeddings: openai.embeddings }', models: '[{ model: v }]' }),
    ],
    shared,
    given,
    () => t.fail('nothing is left out'),
  )
  t.match(both.models.get('a'), { input: ['text'], output: ['text'] })
  t.match(both.models.get('b'), { input: ['text', 'image'], output: ['text'] })
  t.match(both.models.get('v'), { output: ['embedding'] })
})

t.test('what no longer fits is left out with a word to the operator, and the rest stays', async t => {
  const later = catalogOf([{ provider: 'mine', model: 'large' }])
  const good = await manifest({ provider: 'good', models: '[{ model: large }]' })
  const { catalog, warned } = link([await manifest(), good], later)
  t.strictSame(warned, ['mine: a shared provider has this id now'])
  t.strictSame([...catalog.providers.keys()], ['mine', 'good'])
  t.equal(catalog.providers.get('mine')!.owner, undefined)
  t.notOk(catalog.models.has('mine-7b'))

  const wired = (await manifest()).replace('openai.chat', 'gone.chat')
  const second = link([wired, good])
  t.match(second.warned, ['mine: unknown wire "gone.chat"; expected openai.chat, anthropic.messages'])
  t.strictSame([...second.catalog.providers.keys()], ['acme', 'best', 'good'])
  t.strictSame(link([await manifest({ enabled: 'false' })]).catalog.models.size, 2)
  t.strictSame(
    link([await manifest({ base_url: 'http://127.0.0.1:8000/v1' }, { allowPrivate: true })]).warned,
    ['mine: expected "https://" and a public host'],
    'the operator may take the permission back',
  )
})

t.test('a manifest outlasts and outnumbers no cap of the operator', async t => {
  const capped = { ...shared, customCaps: { timeoutMs: 600_000, connectMs: 15_000, concurrency: 64 } }
  const add = (changes: Record<string, string>) => manifest(changes, {}, capped)
  const rows: [changes: Record<string, string>, said: string][] = [
    [
      { timeouts: '{ total: 20d }' },
      'manifest:7:20: expected at most "600s": the operator\'s "custom_providers.max_timeout"',
    ],
    [{ timeouts: '{ idle: 5s, first_event: 601s }' }, 'manifest:7:36: expected at most "600s"'],
    [
      { timeouts: '{ connect: 16s }' },
      'manifest:7:22: expected at most "15s": the operator\'s "custom_providers.max_connect"',
    ],
    [{ concurrency: '65' }, 'manifest:7:14: expected at most 64: the operator\'s "custom_providers.max_concurrency"'],
  ]
  for (const [changes, said] of rows) t.match(String(await refusal(add(changes))), said)
  const at = (manifest: string, from: Catalog) => {
    const { timeouts, concurrency, ownerConcurrency } = link([manifest], from).catalog.providers.get('mine')!
    return { timeouts, concurrency, ownerConcurrency }
  }
  const most = { connect: 5000, firstEvent: undefined, idle: 120_000, total: 600_000 }
  const byDefault = { timeouts: most, concurrency: 64, ownerConcurrency: 64 }
  t.strictSame(at(await add({}), capped), byDefault, 'what nobody wrote is capped, not refused')
  const within = await add({ timeouts: '{ connect: 15s, first_event: 600s, total: 5m }', concurrency: '64' })
  t.match(at(within, capped), { timeouts: { connect: 15_000, firstEvent: 600_000, total: 300_000 }, concurrency: 64 })
  const old = await manifest({ timeouts: '{ connect: 15m, first_event: 20d, total: 20d }', concurrency: '100000' })
  t.strictSame(
    at(old, capped),
    { ...byDefault, timeouts: { ...most, connect: 15_000, firstEvent: 600_000 } },
    'what was stored before is capped when it is loaded',
  )
  t.strictSame(at(old, { ...capped, customCaps: { timeoutMs: 1000, connectMs: 1000, concurrency: 1 } }), {
    timeouts: { connect: 1000, firstEvent: 1000, idle: 1000, total: 1000 },
    concurrency: 1,
    ownerConcurrency: 1,
  })
})
