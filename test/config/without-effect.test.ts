/** What a check refuses and warns of: names that nothing has, places where no store can be, and options that change nothing. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { checkConfig } from '../../src/app/check.ts'
import { Registry } from '../../src/app/registry.ts'
import { ConfigManager } from '../../src/config/manager.ts'
import type { Services } from '../../src/core/ports.ts'
import { type Files, GATEWAY, MODELS, PROVIDER, refusal, writeFiles } from './kit.ts'

const ROUTES = 'config/routes.d/acme.yaml'
const base: Files = {
  [GATEWAY]: `server: { listen: "127.0.0.1:0" }
stores: { sqlite: ../data/gateway.db }
catalog: { models: ./models.d, providers: ../providers.d, routes: ./routes.d }
chains:
  inference: [auth, ratelimit: { rpm: 600 }, route: { auto: [acme] }, translate, billing]
  local: [auth: { optional: true }]
`,
  [MODELS]: `aliases: { quick: acme }
models:
  - { id: acme, name: Acme, family: acme, input: [text], output: [text] }
  - { id: vectors, name: Vectors, family: acme, input: [text], output: [embedding] }
`,
  [PROVIDER]: `provider: acme
name: Acme
base_url: https://api.acme.example/v1
auth: { scheme: none }
wires: { chat: openai.chat, embeddings: openai.embeddings }
models:
  - { model: acme, pricing: { prompt: "1", completion: "2" }, supports: [streaming] }
  - { model: vectors, pricing: { prompt: "1" } }
`,
  [ROUTES]: 'virtual_models:\n  - { id: chain, use: [acme] }\n',
}
const root = t.testdir({ 'folder.db': {} })

type Row = readonly [file: string, from: string, to: string, said: string]
const edited = ([file, from, to]: Row): Files => {
  if (!base[file]!.includes(from)) throw new Error(`${file} does not hold ${from}`)
  return { ...base, [file]: base[file]!.replace(from, () => to) }
}
const written = (files: Files) => writeFiles(mkdtempSync(join(root, 'check-')), files)
const inFront = (section: string) => [GATEWAY, 'stores:', `${section}\nstores:`] as const
const limits = (rest: string) => [GATEWAY, '{ rpm: 600 }', `{ ${rest} }`] as const
const offer = (rest: string) => [PROVIDER, 'supports: [', `${rest}, supports: [`] as const
const chain = (rest: string) => [ROUTES, '{ id: chain, use: [acme] }', rest] as const

const LEAVES = '"auto" leaves it out'
const NEEDS_WEIGHT = 'needs "strategy: weight"; add it, or remove this'
const vain: readonly Row[] = [
  [GATEWAY, '  local:', '  spare: [auth]\n  local:', '6:3: no endpoint uses the chain "spare"; remove it'],
  [GATEWAY, '[acme] }', '[acne, acme] }', `5:62: unknown model "acne"; did you mean "acme"?; ${LEAVES}`],
  [GATEWAY, '[acme] }', '[quick] }', `5:62: "quick" is an alias; write "acme"; ${LEAVES}`],
  [GATEWAY, '[acme] }', '[vectors] }', `5:62: the model "vectors" serves no "chat"; ${LEAVES}`],
  [GATEWAY, 'auto:', 'auto_images:', `5:69: the model "acme" serves no "images"; ${LEAVES}`],
  [
    ...limits('limits: [{ match: { model: acme } }]'),
    '5:43: this entry limits nothing; add a limit such as "rpm: 600"',
  ],
  [
    ...limits('limits: [{ match: { endpoint: [models, key] }, rpm: 5 }]'),
    '5:52: these rules are for calls of models; limit it by "rpm" below "endpoints"',
  ],
  [...limits('limits: [{ match: { model: acne }, rpm: 5 }]'), '5:61: unknown model "acne"; did you mean "acme"?'],
  [
    ...limits('rules: [{ rpm: 5 }, { plans: [lite], rpm: 6 }]'),
    '5:54: the rule before fits all organizations, so that this one never counts',
  ],
  [...limits('rules: [{ plans: [lite], rpm: 5, factor: 2 }]'), '5:67: "rpm" goes before "factor"; remove one'],
  [
    ...inFront('admin: { oidc: { issuer: "https://idp.example", client_id: x } }'),
    '2:16: nobody may sign in: add "allow" with a claim that people need',
  ],
  [...inFront('secrets: { vault: { secret_id: s } }'), '2:21: "secret_id" needs "role_id"; add it'],
  [...inFront('secrets: { vault: { token: t, role_id: r } }'), '2:21: "role_id" goes before "token"; remove one'],
  [
    PROVIDER,
    ', embeddings: openai.embeddings',
    '',
    '8:14: "wires" has none for what "vectors" serves: embeddings; add one',
  ],
  [...offer('voices: { a: b }'), '7:63: "voices" is for speech, which "acme" does not serve here; remove it'],
  [...offer('tier_factors: { flex: "0.5" }'), '7:79: the factor needs "flex" in "service_tiers"; add it'],
  [...offer('parameters: [temprature, seed]'), '7:76: unknown parameter "temprature"; did you mean "temperature"?'],
  [...chain('{ id: chain, use: [{ model: acme, weight: 3 }] }'), `2:39: "weight" ${NEEDS_WEIGHT}`],
  [...chain('{ id: chain, strategy: price, sticky: session, use: [acme] }'), `2:35: "sticky" ${NEEDS_WEIGHT}`],
  [
    ...chain(
      '{ id: chain, use: [acme] }\nrules:\n  - { match: {}, use: acme }\n  - { match: { model: chain }, deny: no }',
    ),
    '5:5: the rule before matches all requests, so that this one never applies',
  ],
]

t.test('options that change nothing are warned of by the check and by reloads, with place and remedy', async t => {
  const { wires, filters, endpoints, operations } = new Registry()
  const terminal = () => Promise.reject(new Error('no request is served'))
  const services = new Proxy({} as Services, { get: () => Object.freeze({}) })
  const path = written(base)
  const folder = join(path, '../..')
  const manager = new ConfigManager({
    path,
    env: {},
    registries: { wires, filters, endpoints, operations, services, terminal },
  })
  await manager.start()
  t.strictSame((await manager.reload()).warnings, [])
  for (const row of vain) {
    const [file, , , said] = row
    const files = edited(row)
    const line = `${file}:${said}`
    t.strictSame((await checkConfig(written(files), { env: {} })).warnings, [line], said)
    writeFiles(folder, files)
    t.strictSame((await manager.reload()).warnings, [line], `${said}, after a reload`)
    writeFiles(folder, base)
  }
})

t.test('names of other catalogues in auto are no mistake, and at most twenty places are shown', async t => {
  const warnings = async (...row: Row) => (await checkConfig(written(edited(row)), { env: {} })).warnings
  t.strictSame(await warnings(GATEWAY, '[acme] }', '[gpt-6-sol, acme] }', ''), [])
  const targets = Array.from({ length: 30 }, () => '{ model: acme, weight: 3 }').join(', ')
  const many = await warnings(...chain(`{ id: chain, use: [${targets}] }`), '')
  t.equal(many.length, 21)
  t.equal(many.at(-1), '10 more places change nothing')
})

const refused: readonly Row[] = [
  [
    GATEWAY,
    '"127.0.0.1:0"',
    '"127.0.0.1:9901"',
    '1:9: 127.0.0.1:9901 is the address of server.listen, too; choose another port',
  ],
  [...limits('limits: [{ match: { endpoint: chta }, rpm: 5 }]'), '5:64: unknown endpoint "chta"; did you mean "chat"?'],
  [...limits('limits: [{ match: { tags: team }, rpm: 5 }]'), '5:60: expected a tag with its value, such as "team=*"'],
  [
    ...inFront('plans: { lite: { monthly: "1", weekly_premium: "1", endpoints: [chat, chta] } }'),
    '2:71: unknown endpoint "chta"; did you mean "chat"?',
  ],
  [GATEWAY, '../data/gateway.db', '../../folder.db', 'folder.db is no file.'],
  [
    GATEWAY,
    'sqlite: ../data/gateway.db',
    'redis: "http://cache:6379"',
    '2:18: The address in stores.redis has another',
  ],
  [
    GATEWAY,
    'sqlite: ../data/gateway.db',
    'postgres: "mysql://db/gateway"',
    '2:21: The PostgreSQL database of stores.postgres cannot be used: its address is no URL such as postgres://',
  ],
]

t.test('names that nothing has, and places where no store can be, are refused as at a start', async t => {
  for (const row of refused) {
    const said = await refusal(checkConfig(written(edited(row)), { env: {} }))
    t.ok(said.startsWith(`${row[0]}:`) && said.includes(row[3]), row[3], { said })
  }
})
