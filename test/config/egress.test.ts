/** `egress` of gateway.yaml and of manifests: which targets have a proxy, what wins, and what is refused. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { credentialWarnings } from '../../src/config/credential-warnings.ts'
import { loadFiles } from '../../src/config/load.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { base, env, GATEWAY, gatewayYaml, loadIn, PROVIDER, providerYaml, refusal, writeFiles } from './kit.ts'

const load = loadIn(t.testdir())
const authority = makeAuthority(t)
const [one, two] = ['one', 'two'].map(name => authority.certificate(name, 'DNS:gateway', 30)) as [Pair, Pair]
interface Pair {
  readonly key: Buffer
  readonly cert: Buffer
}
const folder = t.testdir({
  'ca.pem': `A comment\n${one.cert}\n${two.cert}`,
  'one.pem': one.cert.toString(),
  'one.key': one.key.toString(),
  'two.key': two.key.toString(),
  'words.pem': 'no certificate',
  'locked.key': '-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIF\n-----END ENCRYPTED PRIVATE KEY-----\n',
  'damaged.pem': '-----BEGIN CERTIFICATE-----\nMIIF\n-----END CERTIFICATE-----\n',
})
writeFileSync(join(folder, 'large.pem'), Buffer.alloc(1024 * 1024 + 1))

const files = (shared: string, own = '') => ({
  [GATEWAY]: shared ? `${gatewayYaml}egress: ${shared}\n` : gatewayYaml,
  [PROVIDER]: own ? `${providerYaml}egress: ${own}\n` : providerYaml,
})
const egressOf = async (shared: string, own?: string) => {
  const { catalog } = await load(files(shared, own))
  return { shared: catalog.egress, own: catalog.providers.get('acme')!.egress }
}
const proxy = 'http://proxy.example:3128'

t.test('without a word about it there is no egress, and every provider has the shared one', async t => {
  t.strictSame(await egressOf(''), { shared: undefined, own: undefined })
  const { shared, own } = await egressOf(`{ proxy: "${proxy}" }`)
  t.equal(own, shared)
})

const exempt: readonly (readonly [entries: string, target: string, isExempt: boolean])[] = [
  ['["acme.example"]', 'acme.example:443', true],
  ['["ACME.example."]', 'acme.example.:443', true],
  ['["acme.example"]', 'api.acme.example:443', true],
  ['["acme.example"]', 'notacme.example:443', false],
  ['[".acme.example"]', 'api.acme.example:443', true],
  ['[".acme.example"]', 'acme.example:443', true],
  ['["*.acme.example"]', 'api.acme.example:443', true],
  ['["acme.example:8443"]', 'acme.example:8443', true],
  ['["acme.example:8443"]', 'acme.example:443', false],
  ['[".acme.example:8443"]', 'api.acme.example:8443', true],
  ['["10.0.0.0/8"]', '10.20.30.40:80', true],
  ['["10.0.0.0/8"]', '11.20.30.40:80', false],
  ['["10.0.0.0/8:80"]', '10.20.30.40:443', false],
  ['["10.1.2.3"]', '10.1.2.3:80', true],
  ['["10.1.2.3"]', '110.1.2.3:80', false],
  ['["10.1.2.3:80"]', '10.1.2.3:80', true],
  ['["2001:db8::/32"]', '[2001:db8::1]:443', true],
  ['["[2001:db8::1]:443"]', '[2001:db8::1]:443', true],
  ['["[2001:db8::1]:443"]', '[2001:db8::1]:80', false],
  ['["2001:db8::1"]', '[2001:db8::2]:80', false],
  ['["*"]', 'anything.example:1', true],
  ['"acme.example, .corp 10.0.0.0/8"', 'git.corp:443', true],
  ['"acme.example, .corp 10.0.0.0/8"', '10.0.0.1:443', true],
  ['""', 'acme.example:443', false],
  // This machine, and the metadata services of clouds.
  ['["x.example"]', 'localhost:11434', true],
  ['["x.example"]', 'engine.localhost:11434', true],
  ['["x.example"]', '127.3.2.1:80', true],
  ['["x.example"]', '[::1]:80', true],
  ['[]', 'localhost:11434', false],
  ['[]', '127.0.0.1:80', false],
  ['[]', '169.254.169.254:80', true],
  ['[]', 'metadata.google.internal:80', true],
  ['[]', '[fd00:ec2::254]:80', true],
]
t.test('targets are exempt as curl has them', async t => {
  for (const [entries, target, isExempt] of exempt) {
    const { shared } = await egressOf(`{ proxy: "${proxy}", no_proxy: ${entries} }`)
    const colon = target.lastIndexOf(':')
    const found = shared!.proxyFor(target.slice(0, colon), target.slice(colon + 1))
    t.equal(found === undefined, isExempt, `${target} by ${entries}`)
  }
})

t.test('a proxy is written as in HTTPS_PROXY, and its password may have any character', async t => {
  const written: readonly (readonly [string, object | undefined])[] = [
    ['proxy.example:3128', { protocol: 'http:', name: 'proxy.example:3128', authorization: undefined }],
    ['http://proxy.example', { name: 'proxy.example:80', port: '80' }],
    ['https://proxy.example/', { name: 'proxy.example:443', protocol: 'https:' }],
    ['http://[::1]:8080', { name: '[::1]:8080', hostname: '::1' }],
    ['http://me:p%40ss%3Aw@proxy.example:1', { name: 'proxy.example:1', authorization: `Basic ${btoa('me:p@ss:w')}` }],
    ['http://me@proxy.example:1', { authorization: `Basic ${btoa('me:')}` }],
    ['none', undefined],
    ['', undefined],
  ]
  for (const [text, expected] of written) {
    const { shared } = await egressOf(`{ proxy: "${text}" }`)
    if (expected) t.match(shared!.proxy, expected, text)
    else t.equal(shared!.proxy, undefined, text)
  }
})

t.test('a manifest replaces the proxy with its exemptions, and each other field by itself', async t => {
  const shared = `{ proxy: "${proxy}", no_proxy: [.corp], ca: "${folder}/one.pem" }`
  const proxied = async (own: string, hostname: string) =>
    (await egressOf(shared, own)).own!.proxyFor(hostname, '443')?.name
  t.equal(await proxied('{ proxy: "own.example:1" }', 'git.corp'), 'own.example:1')
  t.equal(await proxied('{ proxy: "own.example:1" }', '127.0.0.1'), 'own.example:1')
  t.equal(await proxied('{ proxy: "own.example:1", no_proxy: [127.0.0.1] }', '127.0.0.1'), undefined)
  t.equal(await proxied('{ proxy: none }', 'acme.example'), undefined)
  t.equal(await proxied('{ no_proxy: [acme.example] }', 'acme.example'), undefined)
  t.equal(await proxied('{ no_proxy: [acme.example] }', 'git.corp'), 'proxy.example:3128')
  t.equal(await proxied(`{ ca: "${folder}/ca.pem" }`, 'git.corp'), undefined)
  t.equal(await proxied(`{ ca: "${folder}/ca.pem" }`, 'acme.example'), 'proxy.example:3128')
  const { own } = await egressOf(shared, '{ proxy: none }')
  t.match(own!.ca, /BEGIN CERTIFICATE/)
  const more = await egressOf(shared, `{ ca: "${folder}/ca.pem" }`)
  t.equal(more.own!.ca!.match(/BEGIN CERTIFICATE/g)!.length, 2)
})

t.test('what differs in a file, a proxy or an exemption is another egress', async t => {
  const ids = new Set<string>()
  const variants = [
    `{ proxy: "${proxy}" }`,
    `{ proxy: "http://me:one@proxy.example:3128" }`,
    `{ proxy: "${proxy}", no_proxy: [] }`,
    `{ proxy: "${proxy}", no_proxy: [.corp] }`,
    `{ ca: "${folder}/one.pem" }`,
    `{ ca: "${folder}/ca.pem" }`,
  ]
  for (const text of variants) ids.add((await egressOf(text)).shared!.id)
  t.equal(ids.size, variants.length)
})

const refused: readonly (readonly [shared: string, own: string, said: string])[] = [
  ['{ proxy: "socks5://canary:canary@p:1" }', '', `expected "http://" or "https://": "socks5:" is no scheme`],
  ['{ proxy: "http://" }', '', 'expected the address of a proxy'],
  ['{ proxy: "http://p:1/path" }', '', 'expected nothing behind the port'],
  ['{ proxy: "http://me:canary%@p:1" }', '', 'begins no percent-encoding'],
  ['{ proxy: "http://p:1", no_proxy: [ok.example, "a b/8/9"] }', '', 'got "b/8/9"'],
  ['{ proxy: "http://p:1", no_proxy: ["10.0.0.0/33"] }', '', 'got "10.0.0.0/33"'],
  ['{ proxy: "http://p:1", no_proxy: "x.*.example" }', '', 'got "x.*.example"'],
  ['{ ca: missing.pem }', '', 'missing.pem" cannot be read: no such file or folder'],
  [`{ ca: "${folder}" }`, '', 'it is not a file'],
  [`{ ca: "${folder}/large.pem" }`, '', 'it is larger than 1048576 bytes'],
  [`{ ca: "${folder}/words.pem" }`, '', 'expected a file with certificates in PEM'],
  [`{ ca: "${folder}/one.key" }`, '', 'expected a file with certificates in PEM'],
  [`{ ca: "${folder}/damaged.pem" }`, '', 'certificate 1 of the file cannot be read'],
  [`{ client_cert: "${folder}/one.pem" }`, '', 'client_cert'],
  ['', `{ client_cert: "${folder}/one.pem" }`, '"client_cert" needs "client_key"'],
  ['', `{ client_key: "${folder}/one.key" }`, '"client_key" needs "client_cert"'],
  ['', `{ client_cert: "${folder}/one.pem", client_key: "${folder}/two.key" }`, 'the key does not fit'],
  ['', `{ client_cert: "${folder}/one.pem", client_key: "${folder}/locked.key" }`, 'the key is encrypted'],
  ['', `{ client_cert: "${folder}/one.pem", client_key: "${folder}/one.pem" }`, 'expected a file with a private key'],
  ['', `{ client_cert: "${folder}/one.key", client_key: "${folder}/one.key" }`, 'expected a file with certificates'],
]
t.test('what cannot be used is refused where it stands, and no password is repeated', async t => {
  for (const [shared, own, said] of refused) {
    const message = await refusal(load(files(shared, own)))
    t.ok(message.includes(said), `${message} | ${said}`)
    const [file, lines] = own ? [PROVIDER, providerYaml] : [GATEWAY, gatewayYaml]
    t.ok(message.startsWith(`${file}:${lines.split('\n').length}:`), message)
    t.notMatch(message, /canary/)
  }
})

t.test('a certificate that ends soon is a warning where it stands, and is used', async t => {
  const pair = authority.certificate('soon', 'DNS:gateway', 3)
  writeFileSync(join(folder, 'soon.pem'), pair.cert)
  writeFileSync(join(folder, 'soon.key'), pair.key)
  const own = `{ client_cert: "${folder}/soon.pem", client_key: "${folder}/soon.key" }`
  const written = files(`{ ca: "${folder}/ca.pem" }`, own)
  const loaded = await loadFiles(writeFiles(t.testdir(), { ...base, ...written }), { env })
  const warnings = await credentialWarnings(loaded)
  t.equal(warnings.length, 1)
  const line = providerYaml.split('\n').length
  t.match(
    warnings[0],
    new RegExp(`^providers\\.d/acme\\.yaml:${line}:\\d+: certificate 1 of the file ends on 20\\d\\d-`),
  )
})
