/** Loading: what is refused and where, what references stand for, what is shown. */
import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { effectiveConfig, staticDifferences } from '../../src/config/effective.ts'
import { loadFiles } from '../../src/config/load.ts'
import type { ConfigSnapshot } from '../../src/config/snapshot.ts'
import { cpuMeter } from '../helpers/cpu.ts'
import { account } from '../upstream/token-endpoint.ts'
import { faults } from './faults.ts'
import {
  acme,
  base,
  edited,
  env,
  GATEWAY,
  gatewayYaml,
  KEY,
  loadIn,
  MODELS,
  modelsYaml,
  PROVIDER,
  providerYaml,
  ref,
  refusal,
  TEAM,
  writeFiles,
} from './kit.ts'

const root = t.testdir({})
const folder = () => mkdtempSync(join(root, 'config-'))
const load = loadIn(root)

t.test('CF-01, SI-15, SI-16 a fault in a file is refused with its position and with what would be right', async t => {
  for (const [file, from, to, said] of faults) {
    t.equal(await refusal(load(edited(file, from, to))), `${file}:${said}`, `${file}: ${to.slice(0, 60)}`)
  }
})

t.test('alerts as their page writes them load, and show no secret', async t => {
  const printed = /```yaml\n(alerts:[\s\S]*?)```/.exec(readFileSync('docs/alerts.md', 'utf8'))![1]!
  const files = edited(GATEWAY, 'stores:', `${printed}stores:`)
  t.match(await refusal(load(files)), `${GATEWAY}:6:13: the environment variable "ALERT_SECRET" is not set`)
  const snapshot = await load(files, { ...env, ALERT_SECRET: 'alert-canary' })
  const { alerts } = snapshot.files.gateway.value
  t.match(alerts, [
    { on: 'limit', at: [0.5, 0.8, 1], secret: 'alert-canary' },
    { on: 'credits', below: '5.00' },
    { format: 'generic' },
  ])
  const shown = JSON.stringify(effectiveConfig(snapshot.files))
  t.notMatch(shown, /alert-canary|T000/)
  t.match(shown, 'https://hooks.slack.com/***')
})

t.test('CF-01 a file that cannot be used at all is refused by its name', async t => {
  const bomb = 'a: &a [x, x, x]\nb: &b [*a, *a, *a, *a]\n'.concat(
    ...['c', 'd', 'e', 'f'].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'bcde'[i]}`).join(', ')}]\n`),
  )
  const rows: [string, string, string][] = [
    [GATEWAY, '', '1:1: the file is empty'],
    [GATEWAY, '# only a comment\n', '1:1: the file is empty'],
    [GATEWAY, 'just text', '1:1: expected a mapping, got "just text"'],
    [GATEWAY, '- a\n', '1:1: expected a mapping, got a list of 1'],
    [PROVIDER, '#'.repeat(1024 * 1024 + 1), '1:1: the file is larger than 1 MiB (1048577 bytes); split it'],
    [GATEWAY, '['.repeat(10_000), 'nests deeper than 64 levels'],
    [GATEWAY, bomb, 'more than 100 aliases; write the values out'],
    ['providers.d/second.yaml', providerYaml, '1:11: the provider "acme" is defined twice; keep one'],
    ['providers.d/second.yml', providerYaml, '1:1: rename it to end in ".yaml"'],
  ]
  for (const [file, text, said] of rows) {
    const got = await refusal(load({ [file]: text }))
    t.ok(got.startsWith(`${file}:`) && got.endsWith(said), `${file}: ${text.slice(0, 20)}`, { got, said })
  }
  const latin1 = writeFiles(folder(), base)
  writeFileSync(latin1, Buffer.from([0x61, 0x3a, 0x20, 0xe9]))
  t.equal(await refusal(loadFiles(latin1, { env })), `${GATEWAY}:1:1: expected UTF-8 text`)
  const nowhere = join(folder(), 'config/gateway.yaml')
  t.match(await refusal(loadFiles(nowhere, { env })), /gateway\.yaml:1:1: the file cannot be read: no such file/)
  t.match(await refusal(load(edited(GATEWAY, './models.d', './nowhere'))), /yaml:3:20: the folder ".*nowhere" cannot/)
})

t.test('CF-01 the shipped file cut off at any place loads or is refused, and never crashes', async t => {
  const shipped = readFileSync('config/gateway.yaml', 'utf8').replace('  extends: packaged', '  plugins: .')
  const path = writeFiles(folder(), { ...base, [GATEWAY]: shipped })
  await t.resolves(loadFiles(path, { env }), 'whole')
  for (let end = 0; end < shipped.length; end += 100) {
    for (const size of [end, end + 50]) {
      writeFileSync(path, shipped.slice(0, size))
      const got = await refusal(loadFiles(path, { env }))
      t.match(got, /^(config\/gateway\.yaml:\d+:\d+: .+|not refused)$/, `${size} bytes`)
    }
  }
})

t.test('HOST, PORT, GATEWAY_ADMIN_LISTEN and GATEWAY_DATA go before what the file says', async t => {
  const path = writeFiles(folder(), base)
  const rows: [more: Record<string, string>, listen: string, sqlite: string][] = [
    [{}, '127.0.0.1:0', '../data/gateway.db'],
    [{ HOST: '', PORT: '', GATEWAY_DATA: '' }, '127.0.0.1:0', '../data/gateway.db'],
    [{ PORT: '9000' }, '127.0.0.1:9000', '../data/gateway.db'],
    [{ HOST: '0.0.0.0' }, '0.0.0.0:0', '../data/gateway.db'],
    [{ HOST: '::', PORT: '65535' }, '[::]:65535', '../data/gateway.db'],
    [{ HOST: '[::1]' }, '[::1]:0', '../data/gateway.db'],
    [{ HOST: '::ffff:127.0.0.1' }, '[::ffff:127.0.0.1]:0', '../data/gateway.db'],
    [{ HOST: 'gateway-1.internal' }, 'gateway-1.internal:0', '../data/gateway.db'],
    [{ GATEWAY_DATA: '/var/lib/gateway/' }, '127.0.0.1:0', '/var/lib/gateway/gateway.db'],
    [{ GATEWAY_DATA: 'store' }, '127.0.0.1:0', resolve('store/gateway.db')],
  ]
  for (const [more, listen, sqlite] of rows) {
    const { gateway } = await loadFiles(path, { env: { ...env, ...more } })
    t.strictSame([gateway.value.server.listen, gateway.value.stores.sqlite], [listen, sqlite], JSON.stringify(more))
  }
  const unset = writeFiles(folder(), { ...base, ...edited(GATEWAY, 'listen: 127.0.0.1:0, ', '') })
  const { gateway } = await loadFiles(unset, { env: { ...env, PORT: '1' } })
  t.equal(gateway.value.server.listen, '127.0.0.1:1')
  const moved = await loadFiles(path, { env: { ...env, GATEWAY_ADMIN_LISTEN: '[::1]:9001', GATEWAY_DATA: '/srv' } })
  t.equal(moved.gateway.value.server.admin, '[::1]:9001')
  t.equal(moved.gateway.value.jobs.blobs, '/srv/blobs')
  for (const [name, value] of [
    ['GATEWAY_ADMIN_LISTEN', '8081'],
    ['GATEWAY_ADMIN_LISTEN', 'http://127.0.0.1:8081'],
    ['GATEWAY_ADMIN_LISTEN', '127.0.0.1:65536'],
    ['PORT', '-1'],
    ['PORT', '1e3'],
    ['PORT', '65536'],
    ['HOST', 'a b'],
    ['HOST', 'localhost:80'],
    ['HOST', '0.0.0.0:80'],
    ['HOST', '[beef]'],
    ['HOST', '[1.2.3.4]'],
    ['HOST', '127.0.0.1/8'],
  ] as const) {
    const said = `the environment variable ${name} is "${value}"; it must be `
    const loading = loadFiles(path, { env: { ...env, [name]: value } })
    const { message } = await loading.then(
      () => new Error('not refused'),
      error => error as Error,
    )
    t.equal(message.slice(0, said.length), said)
  }
})

t.test('many keys and references are read in linear time', async t => {
  const keys = Array.from({ length: 40_000 }, (_, i) => `k${i}: 1\n`).join('')
  const references = `server: "${'$'.concat('{').repeat(200_000)}"\n`
  const used = cpuMeter()
  t.match(await refusal(load({ [GATEWAY]: keys })), /:1:1: missing key "server"/)
  t.match(await refusal(load({ [GATEWAY]: references })), /1:9: expected "\$\{NAME\}"/)
  t.ok(used() < 10_000, `${used()} ms of CPU`)
})

t.test('references read the environment and files, as whole values and as parts', async t => {
  const config = folder()
  const path = writeFiles(config, {
    ...base,
    [GATEWAY]: gatewayYaml.replace('30s', () => `"${ref('DRAIN')}"`),
    [PROVIDER]: providerYaml
      .replace(KEY, () => `"${ref('file:../secret')}, ${ref('SECOND')}, sk-acme-one"`)
      .replace(TEAM, () => `"team ${ref('TEAM')} of ${ref('TEAM')}"`),
    secret: 'sk-acme-one\n',
  })
  const files = await loadFiles(path, { env: { ...env, SECOND: 'sk-acme-two' } })
  t.equal(files.gateway.value.server.drain, 30_000)
  t.equal(files.providers[0]?.value.headers['X-Team'], 'team team-secret of team-secret')
  t.match(files.providers[0]?.value.auth, { secret: 'sk-acme-one, sk-acme-two, sk-acme-one' })
  t.strictSame(files.providers[0]?.references, [join(config, 'secret')])
  t.match(
    await refusal(load(edited(PROVIDER, KEY, `"${ref('file:nowhere')}"`))),
    /^providers\.d\/acme\.yaml:4:33: the file ".*providers\.d\/nowhere" cannot be read: no such file/,
  )
})

t.test('an alias stands for the last definition above it, and shares nothing with it', async t => {
  const aliased = await load(
    edited(PROVIDER, 'wires:', 'quirks: { default: { a: &t { x: 1 }, b: *t, c: &t { x: 2 }, d: *t } }\nwires:'),
  )
  const values = acme(aliased).quirks.default
  t.strictSame(values, { a: { x: 1 }, b: { x: 1 }, c: { x: 2 }, d: { x: 2 } })
  t.not(values.a, values.b)
})

t.test('a secret is a list of credentials, and one that is not set is none', async t => {
  const fingerprint = (secret: string) =>
    createHmac('sha256', 'model-gateway credential fingerprint').update(secret).digest('hex').slice(0, 7)
  const usual = { label: undefined, limits: undefined, regions: undefined, auth: undefined }
  const credential = (secret: string) => ({
    id: `acme#${fingerprint(secret)}`,
    source: 'platform',
    secret,
    fingerprint: fingerprint(secret),
    weight: 1,
    ...usual,
  })
  const both = [credential('sk-acme-one'), credential('sk-acme-two')]
  t.strictSame(acme(await load({})).credentials, both)
  t.strictSame(acme(await load({}, { TEAM: 'x' })).credentials, [])
  t.strictSame(acme(await load({}, { TEAM: 'x', ACME_API_KEY: ' , ' })).credentials, [])
  const two = edited(PROVIDER, KEY, `"${ref('ACME_API_KEY')}, ${ref('ACME_OTHER')}, sk-acme-one"`)
  t.strictSame(acme(await load(two)).credentials, both, 'the unset one of two is left out, the repeated one is one')
})

t.test('a list of credentials has names, weights, limits and schemes, and each secret may be unset', async t => {
  const own = (written: string) => edited(PROVIDER, `{ scheme: bearer, secret: ${KEY} }`, written)
  const linked = async (written: string) =>
    acme(await load(own(written))).credentials.map(({ secret, label, weight, limits, auth }) => {
      return { secret, label, weight, limits, auth }
    })
  const one = { secret: 'sk-acme-one', label: 'a', weight: 3, limits: { rpm: 5, tpm: undefined }, auth: undefined }
  const two = { secret: 'two', label: undefined, weight: 1, limits: undefined, auth: undefined }
  const secrets = `[{ secret: sk-acme-one, name: a, weight: 3, rpm: 5 }, { secret: "two" }, { secret: "${ref('UNSET_KEY')}" }]`
  t.strictSame(await linked(`{ scheme: bearer, secrets: ${secrets} }`), [one, two])
  t.strictSame(await linked(secrets), [one, two], 'bearer without a scheme')
  const header = { ...two, auth: { scheme: 'header', header: 'x-key' } }
  t.strictSame(
    await linked(
      '[{ secret: sk-acme-one, name: a, weight: 3, rpm: 5 }, { scheme: header, header: x-key, secret: two }]',
    ),
    [one, header],
  )
  t.strictSame(await linked('[{ secret: two, weight: 2 }]'), [{ ...two, weight: undefined }], 'the only one needs none')
  t.match(
    await refusal(load(own('[{ secret: a }, { secret: "sk-secret-text\\nb" }]'))),
    /acme\.yaml:\d+:\d+: a secret contains a line break/,
  )
  const unwritten = await refusal(load(own('{ scheme: bearer, secrets: [sk-secret-text] }')))
  t.match(unwritten, /expected a mapping, got another value/)
  t.notMatch(unwritten, 'sk-secret')
  t.match(await refusal(load(own('[{ secret: a, weight: 0 }]'))), /expected a number above 0/)
  t.match(await refusal(load(own('[{ secret: a, regions: [eu] }]'))), /"regions" needs an address with/)
  t.match(await refusal(load(own('[{ scheme: none }]'))), /has a scheme other than "none"/)
  t.match(
    await refusal(load(own('[{ secret: a, header: x-key }]'))),
    /auth scheme "bearer" does not use the key "header"/,
  )
})

t.test('every auth scheme carries what it needs', async t => {
  const secret = `secret: ${KEY}`
  const rows: [string, unknown][] = [
    [`{ scheme: bearer, ${secret} }`, { scheme: 'bearer' }],
    [`{ scheme: header, header: x-api-key, ${secret} }`, { scheme: 'header', header: 'x-api-key' }],
    [`{ scheme: query, parameter: key, ${secret} }`, { scheme: 'query', parameter: 'key' }],
    ['{ scheme: none }', { scheme: 'none' }],
    [
      '{ scheme: aws-sigv4, region: us-east-1, secret: "AKID:secret/+key" }',
      { scheme: 'aws-sigv4', region: 'us-east-1', service: 'bedrock' },
    ],
    [
      '{ scheme: aws-sigv4, region: eu-west-1, service: execute-api, secret: "" }',
      { scheme: 'aws-sigv4', region: 'eu-west-1', service: 'execute-api' },
    ],
    [
      '{ scheme: gcp-oauth, secret: "" }',
      { scheme: 'gcp-oauth', scope: 'https://www.googleapis.com/auth/cloud-platform' },
    ],
    ['{ scheme: gcp-oauth, scope: all, secret: "" }', { scheme: 'gcp-oauth', scope: 'all' }],
  ]
  for (const [written, auth] of rows) {
    t.strictSame(acme(await load(edited(PROVIDER, `{ scheme: bearer, ${secret} }`, written))).auth, auth)
  }
})

t.test('a secret of several parts is checked when it is read, and shown nowhere', async t => {
  const written = (auth: string) => edited(PROVIDER, `scheme: bearer, secret: ${KEY}`, auth)
  const aws = written('scheme: aws-sigv4, region: us-east-1, secret: "AKID1:one:session, AKID2:two"')
  t.strictSame(
    acme(await load(aws)).credentials.map(({ secret }) => secret),
    ['AKID1:one:session', 'AKID2:two'],
  )

  const gcp = written(`scheme: gcp-oauth, secret: "${ref('file:../key.json')}"`)
  const key = account({ token_uri: 'http://127.0.0.1:1/token' })
  const snapshot = await load({ ...gcp, 'key.json': `${key}\n` })
  const [credential, ...more] = acme(snapshot).credentials
  t.strictSame(more, [], 'the commas of JSON part nothing')
  t.equal(credential?.secret, key)
  t.match(credential?.fingerprint, /^[0-9a-f]{7}$/)
  t.notMatch(JSON.stringify(effectiveConfig(snapshot.files)), /PRIVATE|acme\.test/)
  const inEnv = written(`scheme: gcp-oauth, secret: "${ref('ACME_ACCOUNT')}"`)
  t.equal(acme(await load(inEnv, { ...env, ACME_ACCOUNT: key })).credentials.length, 1)
  t.strictSame(acme(await load(inEnv)).credentials, [], 'a variable that is not set is none')

  const at = `${PROVIDER}:4:36:`
  const refused = (text: string) => refusal(load({ ...gcp, 'key.json': text }))
  t.equal(
    await refused(key.slice(0, -1)),
    `${at} expected the JSON of a service account's key file, such as "${ref('file:key.json')}"`,
  )
  for (const token_uri of ['http://10.0.0.1/token', 'ftp://127.0.0.1/token']) {
    t.equal(
      await refused(account({ token_uri })),
      `${at} the "token_uri" of the service account must start with "https://": plain http is for loopback addresses`,
    )
  }
  t.equal(await refused(account({ token_uri: 'no' })), `${at} the "token_uri" of the service account is no address`)
})

t.test('a default stands for a variable that is unset or empty', async t => {
  const team = async (reference: string, environment: Readonly<Record<string, string>>) =>
    acme(await load(edited(PROVIDER, TEAM, `"a ${ref(reference)} b"`), { ...environment })).headers['x-team']
  const rows: [reference: string, environment: Readonly<Record<string, string>>, value: string][] = [
    ['TEAM:-x', {}, 'a x b'],
    ['TEAM:-x', { TEAM: '' }, 'a x b'],
    ['TEAM:-x', { TEAM: 'y' }, 'a y b'],
    ['TEAM:-', {}, 'a  b'],
    ['TEAM:-u:-v, w-', {}, 'a u:-v, w- b'],
    ['TEAM', { TEAM: '' }, 'a  b'],
  ]
  for (const [reference, environment, value] of rows) {
    t.equal(await team(reference, environment), value, `${reference} ${JSON.stringify(environment)}`)
  }
  const region = edited(PROVIDER, 'api.acme', `${ref('ACME_REGION:-eu')}.acme`)
  t.equal(acme(await load(region)).baseUrl, 'https://eu.acme.example/v1')
  t.strictSame(acme(await load(edited(PROVIDER, KEY, `"${ref('ACME_KEY:-')}"`))).credentials, [])
  const versions = [await load(region), await load(region, { ...env, ACME_REGION: 'us' })].map(({ version }) => version)
  t.not(versions[0], versions[1])
})

t.test('plain http is for loopback addresses, and for others where the manifest allows it', async t => {
  const at = (address: string) => load(edited(PROVIDER, 'https://api.acme.example/v1/', address))
  for (const address of ['http://127.0.0.1:1/v1', 'http://127.9.9.9', 'http://[::1]:80/v1', 'http://localhost:11434']) {
    t.equal(acme(await at(address)).baseUrl, address)
  }
  for (const address of [
    'http://10.0.0.1',
    'http://127.0.0.1.example.com',
    'http://localhost.example',
    'http://[::2]',
  ]) {
    t.match(await refusal(at(address)), /3:11: expected "https:\/\/".* add the line "allow_http: true"$/, address)
    t.equal(acme(await at(`${address}\nallow_http: true`)).baseUrl, address)
  }
  t.equal(acme(await at('http://ollama:11434/v1\nallow_http: true')).baseUrl, 'http://ollama:11434/v1', 'a bare name')
  t.match(await refusal(at('ftp://10.0.0.1\nallow_http: true')), /3:11: expected an address such as/)
})

t.test('SI-17 credentials that a manifest holds as they are are not shown', async t => {
  const literal = 'a1b2c3d4e5f6g7h8i9j0'
  const headers = `headers: { x-api-key: short, X-Note: "Bearer ${literal}", X-Plain: plain,`
  const defaults = `quirks: { default: { extra: { token: abc, list: [sk-${literal}] }, user: me } }`
  const snapshot = await load(edited(PROVIDER, 'headers: {', `${defaults}\n${headers}`))
  const text = JSON.stringify(effectiveConfig(snapshot.files))
  t.notMatch(text, new RegExp(`${literal}|"short"|"abc"`))
  t.match(text, /"X-Plain":"plain".*"user":"me"|"user":"me".*"X-Plain":"plain"/)
})

t.test('SI-17 secrets are shown nowhere', async t => {
  const shown = (snapshot: ConfigSnapshot) => JSON.stringify(effectiveConfig(snapshot.files))
  const snapshot = await load(
    edited(PROVIDER, 'headers: {', `quirks: { default: { user: "${ref('TEAM')}" } }\nheaders: { X-Plain: plain,`),
  )
  const [provider] = effectiveConfig(snapshot.files).providers as Record<string, unknown>[]
  t.match(provider, {
    auth: { scheme: 'bearer', secret: '***' },
    headers: { 'X-Plain': 'plain', 'X-Team': '***' },
    quirks: { default: { user: '***' } },
    timeouts: { connect: 5000 },
  })
  t.notMatch(shown(snapshot), /sk-acme|team-secret/)
  t.notMatch(shown(await load(edited(PROVIDER, KEY, 'sk-acme-literal'))), /sk-acme/)
  t.match(shown(await load({}, { TEAM: 'x' })), /"secret":""/, 'a secret that is not set is not hidden')
  const stores = edited(GATEWAY, '../data/gateway.db', `"${ref('TEAM')}.db"`)
  t.match(shown(await load(stores)), /"sqlite":"\*\*\*"/)
  const wrong = edited(PROVIDER, 'scheme: bearer', `scheme: "${ref('TEAM')}"`)
  t.equal(
    await refusal(load(wrong)),
    `${PROVIDER}:4:17: expected one of "bearer", "header", "query", "aws-sigv4", "gcp-oauth", "none", got another value`,
  )
})

t.test('the version follows what is in force, not how it is written', async t => {
  const { version } = await load({})
  t.match(version, /^[0-9a-f]{12}$/)
  t.equal((await load({ [MODELS]: `# a comment\n${modelsYaml.replace('[text]', '[ text ]')}` })).version, version)
  const others = [
    await load(edited(MODELS, 'Acme Embed', 'Acme Embeddings')),
    await load(edited(GATEWAY, 'rpm: 600', 'rpm: 601')),
    await load({}, { ...env, ACME_API_KEY: 'sk-acme-one' }),
    await load({}, { ...env, TEAM: 'other' }),
  ].map(snapshot => snapshot.version)
  t.equal(new Set([version, ...others]).size, 5)
})

t.test('the version does not depend on the values of own variables', async t => {
  const config = folder()
  const team = (text: string) =>
    writeFiles(config, { ...base, [PROVIDER]: providerYaml.replace(TEAM, () => JSON.stringify(text)) })
  const loaded = async (text: string, own: string, other: string) => {
    const given = { env: { ...env, OWN: own, TEAM: other }, own: new Set(['OWN']) }
    const { version, providers } = await loadFiles(team(text), given)
    return [version, providers[0]!.value.headers['X-Team']]
  }
  const both = `${ref('OWN')}, ${ref('TEAM')}`
  const [version, value] = await loaded(both, 'one', 'red')
  t.equal(value, 'one, red')
  t.strictSame(await loaded(both, 'two', 'red'), [version, 'two, red'])
  const others = [
    await loaded(both, 'one', 'blue'),
    await loaded(`${both}!`, 'one', 'red'),
    await loaded(`${ref('OWN:-one')}, ${ref('TEAM')}`, '', 'red'),
    await loaded('one, red', 'one', 'red'),
  ]
  t.equal(new Set([version, ...others.map(([other]) => other)]).size, 5)
})

t.test('CF-10 what only a restart changes is named', async t => {
  const value = async (from: string, to: string) => (await load(edited(GATEWAY, from, to))).files.gateway.value
  const before = (await load({})).files.gateway.value
  t.strictSame(staticDifferences(before, await value('rpm: 600', 'rpm: 601')), [])
  t.strictSame(staticDifferences(before, await value('gateway.db', 'other.db')), ['stores.sqlite'])
  t.strictSame(staticDifferences(before, await value(', drain: 30s', ', admin: 127.0.0.1:9')), [
    'server.drain',
    'server.admin',
  ])
  const { jobs } = before
  t.strictSame(staticDifferences(before, { ...before, jobs: { ...jobs, poll: 1, blobs: 'other' } }), ['jobs.blobs'])
})

t.test('CF-13 a link in a folder may point within it, not out of it', async t => {
  const config = folder()
  const path = writeFiles(config, {
    ...base,
    'elsewhere/acme.yaml': modelsYaml,
    'config/models.d/..v1/b.yaml': 'models: []',
  })
  symlinkSync('..v1/b.yaml', join(config, 'config/models.d/b.yaml'))
  t.equal((await loadFiles(path, { env })).models.length, 2)
  symlinkSync('../../elsewhere/acme.yaml', join(config, 'config/models.d/c.yaml'))
  t.match(await refusal(loadFiles(path, { env })), /^config\/models\.d\/c\.yaml:1:1: it is a link to a file outside/)
  mkdirSync(join(config, 'config/models.d/a.yaml'))
  t.equal(
    await refusal(loadFiles(path, { env })),
    'config/models.d/c.yaml:1:1: it is a link to a file outside of its folder; copy that file here',
  )
})

t.test('end users are named by the header and the field of the configuration', async t => {
  const options = async (yaml: string) => (await load({ [GATEWAY]: `${gatewayYaml}${yaml}` })).endUsers
  t.equal(await options(''), undefined)
  t.match(await options('end_users: { header: X-OpenWebUI-User-Id }\n'), {
    header: 'x-openwebui-user-id',
    field: 'user',
  })
  t.match(await options('end_users: { field: metadata.customer }\n'), { header: undefined, field: 'metadata.customer' })
  const limited = await options('end_users: { default_limit: { amount: "0.5" } }\n')
  t.strictSame(limited?.limit, { limit: 500_000_000n, period: 'month', onLimit: undefined })
  for (const yaml of [
    '{ default_limit: { amount: 5 } }',
    '{ default_limit: { amount: "1", period: year } }',
    '{ header: "a b" }',
    '{ header: "" }',
    '{ field: a..b }',
    '{ headers: x }',
  ]) {
    await t.rejects(options(`end_users: ${yaml}\n`), /expected|unknown key/, yaml)
  }
})

t.test('an unknown model of an "on_limit" is refused wherever it stands', async t => {
  const limits = (use: string) => `[{ rpm: 1, on_limit: { use: ${use} } }]`
  const said = async (yaml: string) => await refusal(load({ [GATEWAY]: yaml }))
  const why = 'unknown model "acme-larg"; did you mean "acme-large"?'
  const chain = gatewayYaml.replace('rpm: 600', `rpm: 600, limits: ${limits('acme-larg')}`)
  t.equal(await said(chain), `config/gateway.yaml:8:66: ${why}`)
  const endpoint = gatewayYaml.replace('rpm: 100', `rpm: 100, limits: ${limits('acme-larg')}`)
  t.equal(await said(endpoint), `config/gateway.yaml:17:70: ${why}`)
  const endUsers = 'end_users: { default_limit: { amount: "1", on_limit: { use: acme-larg } } }\n'
  t.equal(await said(gatewayYaml + endUsers), `config/gateway.yaml:18:61: ${why}`)
  const other = chain.replace('acme-larg', 'acm/acme-large')
  t.equal(await said(other), 'config/gateway.yaml:8:66: unknown provider "acm"; did you mean "acme"?')
})
