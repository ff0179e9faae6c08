/** What `gatewayctl import litellm` writes, served: every name of every fixture answers at its endpoint. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { plainName } from '../../src/cli/litellm/sections.ts'
import { run } from '../../src/cli/program.ts'
import { SILENCE, startAnyProvider } from '../helpers/any-provider.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures', import.meta.url))
const { origin, account } = await startAnyProvider(t)

interface Imported {
  readonly set: readonly { readonly name: string; readonly value: string }[]
  readonly keys: readonly { readonly key: string; readonly fate: string }[]
}

/** Every name that a client of the old gateway may call. A name with a star stands for one that fits it. */
function namesOf(file: string, { keys }: Imported): string[] {
  const { model_list, router_settings } = parse(readFileSync(file, 'utf8'), { merge: true })
  const isCarried = (key: string) => (keys.find(one => one.key === key)?.fate ?? 'not carried') !== 'not carried'
  const names = (model_list as { model_name: string }[])
    .filter((_, index) => isCarried(`model_list[${index}].model_name`))
    .map(({ model_name: name }) =>
      name === '*' ? 'new-model' : name.replace('*', name.startsWith('claude') ? 'sonnet-4-5' : 'some-model'),
    )
  const aliases = Object.keys(router_settings?.model_group_alias ?? {}).filter(alias =>
    keys.some(
      ({ key, fate }) => key.startsWith(`router_settings.model_group_alias.${alias}`) && fate !== 'not carried',
    ),
  )
  return [...new Set([...names, ...aliases].map(plainName))]
}

const form = (model: string) => {
  const body = new FormData()
  body.set('model', model)
  body.set('file', new Blob([SILENCE]), 'silence.wav')
  return body
}
const REQUESTS: Record<string, (model: string) => readonly [path: string, body: object]> = {
  chat: model => ['chat/completions', { model, messages: [{ role: 'user', content: 'Who answers?' }] }],
  embeddings: model => ['embeddings', { model, input: 'text' }],
  images: model => ['images/generations', { model, prompt: 'a dot' }],
  speech: model => ['audio/speech', { model, input: 'text', voice: 'alloy', response_format: 'wav' }],
  transcriptions: model => ['audio/transcriptions', form(model)],
  rerank: model => ['rerank', { model, query: 'a', documents: ['a'] }],
  moderations: model => ['moderations', { model, input: 'text' }],
}

const gateway = await startGateway(t, {
  providers: { none: { base_url: `${origin}/v1` } },
  env: { AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' },
  config: { catalog: { routes: './routes.d' } },
  files: {
    '.aws/credentials': '[dev]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = secret\n',
    'config/routes.d/none.yaml': 'virtual_models: []\n',
  },
})

const sources = ['litellm', 'portkey', 'openrouter'].flatMap(format =>
  readdirSync(join(FIXTURES, format)).map(file => [format, file] as const),
)
for (const [format, name] of sources.filter(([, file]) => file !== 'odd.yaml')) {
  t.test(`every name of ${format}/${name} answers`, async t => {
    const file = join(FIXTURES, format, name)
    const out = join(t.testdir({}), 'new')
    let printed = ''
    const print = (text: unknown) => {
      printed += String(text)
    }
    await run(['import', format, file, '--out', out, '--json'], { env: {}, cwd: out, out: print, err: print })
    const imported = JSON.parse(printed) as Imported
    for (const folder of ['providers.d', 'config/models.d', 'config/routes.d']) {
      const [from, to] = [join(out, folder), join(gateway.dir, folder)]
      for (const one of readdirSync(to)) rmSync(join(to, one))
      for (const one of readdirSync(from)) {
        const text = readFileSync(join(from, one), 'utf8')
        writeFileSync(join(to, one), folder === 'providers.d' ? here(text, imported) : text)
      }
    }
    const reloaded = await gateway.admin('POST', '/reload')
    t.equal(reloaded.status, 200, await reloaded.text())
    const names =
      format === 'litellm' ? namesOf(file, imported) : [name === 'any-model.json' ? `${format}/new` : format]
    const listed = (await (await gateway.get('/v1/models')).json()) as { data: { id: string; operations: string[] }[] }
    const inner = (name: string) =>
      !names.includes(name) && (name.includes('*') || names.some(one => name.startsWith(`${one}.`)))
    t.strictSame(listed.data.map(({ id }) => id).filter(inner), [])
    for (const model of names) {
      const shown = (await (await gateway.get(`/v1/models/${encodeURIComponent(model)}`)).json()) as {
        operations?: string[]
      }
      // A session of realtime is no request: that its endpoint serves the name is enough.
      if (shown.operations?.includes('realtime')) continue
      const operation = shown.operations?.find(one => one in REQUESTS) ?? 'chat'
      const [path, body] = REQUESTS[operation]!(model)
      const answered =
        body instanceof FormData
          ? await fetch(`${gateway.url}/v1/${path}`, {
              method: 'POST',
              headers: { authorization: `Bearer ${gateway.key}` },
              body,
            })
          : await gateway.post(`/v1/${path}`, body)
      const text = await answered.text()
      t.equal(answered.status, 200, `${model} at ${path}: ${answered.status === 200 ? '' : text}`)
      const used = /"used_model":"([^"]*)"/.exec(text)?.[1]
      t.notOk(used !== undefined && inner(used), `${model} was answered by ${used}`)
    }
  })
}

/** A manifest at the provider of this test, with a value for each variable. */
function here(text: string, { set }: Imported): string {
  const manifest = parse(text) as { provider: string; base_url: string }
  const base = manifest.base_url.replace(
    /^(?:https?:\/\/(?:\$\{[^}]*\}|[^/])*|\$\{[^}]*\})/,
    `${origin}/${manifest.provider}`,
  )
  let replaced = JSON.stringify({ ...manifest, base_url: base })
  for (const { name, value } of set) {
    const secret = /JSON/.test(value) ? account : /^A$|ACCESS_KEY_ID/.test(name) ? 'AKIAEXAMPLE' : 'us-east-1'
    replaced = replaced.replaceAll(new RegExp(`\\$\\{${name}(?::-[^}]*)?\\}`, 'g'), () =>
      JSON.stringify(secret).slice(1, -1),
    )
  }
  return replaced
}

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')
/** A key as `/key/list?return_full_object=true` answers it. */
const oldKey = (secret: string, more: object = {}) => ({
  token: hashOf(secret),
  key_name: `sk-...${secret.slice(-4)}`,
  key_alias: null,
  spend: 0,
  max_budget: null,
  budget_duration: null,
  expires: null,
  models: [],
  aliases: {},
  config: {},
  user_id: 'default_user_id',
  team_id: null,
  max_parallel_requests: null,
  metadata: {},
  blocked: null,
  tpm_limit: null,
  rpm_limit: null,
  ...more,
})
const PLENTY = { max_budget: 1_000_000, spend: 1.25, budget_duration: '30d' }
const OLD_KEYS = [
  oldKey('sk-canary-plain-0001', { key_alias: 'plain', models: ['*'], metadata: { note: 'canary-metadata' } }),
  oldKey('sk-canary-spent-0002', { key_alias: 'spent', max_budget: 2, spend: 2.5, user_id: 'user-8' }),
  oldKey('sk-canary-team-0003', {
    ...PLENTY,
    team_id: 't-1',
    models: ['all-team-models'],
    user_id: 'ada@example.com',
    rpm_limit: 50,
    tpm_limit: 9000,
    max_parallel_requests: 3,
  }),
  oldKey('sk-canary-only-0004', { models: ['oth*'], user_id: 'user-7', team_id: 't-1', team_alias: 'blue' }),
  oldKey('sk-canary-blocked-0005', { blocked: true }),
  oldKey('sk-canary-expired-0006', { expires: '2020-01-01T00:00:00+00:00', organization_id: 'org-9' }),
  oldKey('sk-canary-shared-0008', {
    spend: 2.5,
    budget_id: 'tier',
    litellm_budget_table: { budget_id: 'tier', max_budget: 2, budget_duration: '7d', rpm_limit: 5, soft_budget: 1 },
  }),
]

async function startLitellm(t: Pick<typeof import('tap').default, 'teardown'>, size: number) {
  const server = createServer((request, response) => {
    const { searchParams, pathname } = new URL(request.url!, 'http://localhost')
    const page = Number(searchParams.get('page'))
    const isRight = pathname === '/key/list' && request.headers.authorization === 'Bearer sk-admin-canary'
    if (pathname === '/team/list') {
      const teams = [
        { team_id: 't-1', team_alias: 'blue', models: ['test'], rpm_limit: 70, max_budget: 9, blocked: false },
      ]
      return response.end(JSON.stringify(teams))
    }
    if (pathname === '/user/list') {
      const budget = { max_budget: 40, budget_duration: '7d' }
      const users = ['seven', 'eight'].map((name, at) => ({
        user_id: `user-${at + 7}`,
        user_email: `${name}@example.com`,
        ...budget,
      }))
      return response.end(JSON.stringify({ users, page: 1, total_pages: 1 }))
    }
    const keys = OLD_KEYS.slice((page - 1) * size, page * size)
    const total_pages = Math.ceil(OLD_KEYS.length / size)
    return response
      .writeHead(isRight ? 200 : 401)
      .end(JSON.stringify({ keys, total_count: OLD_KEYS.length, current_page: page, total_pages }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('keys go on working with their limits and what was spent of them', async t => {
  for (const folder of ['config/routes.d', 'config/models.d', 'providers.d']) {
    for (const one of readdirSync(join(gateway.dir, folder))) rmSync(join(gateway.dir, folder, one))
  }
  await gateway.writeProvider('none', {
    base_url: `${origin}/v1`,
    models: [testMapping, { ...testMapping, model: 'other' }],
  })
  const models = ['test', 'other'].map(id => ({ id, name: id, family: 'own', input: ['text'], output: ['text'] }))
  await gateway.writeFile('config/models.d/own.yaml', JSON.stringify({ models }))
  await gateway.writeFile('config/routes.d/none.yaml', 'virtual_models: []\n')
  t.equal((await gateway.admin('POST', '/reload')).status, 200)
  const litellm = await startLitellm(t, 4)
  const imported = async (...args: string[]) => {
    let printed = ''
    const print = (text: unknown) => {
      printed += String(text)
    }
    const env = { GATEWAY_ADMIN: gateway.adminUrl, GATEWAY_ADMIN_TOKEN: gateway.token, MASTER: 'sk-admin-canary' }
    const code = await run(['import', 'litellm', ...args], { env, cwd: gateway.dir, out: print, err: print })
    t.notMatch(printed, /canary/, 'nothing secret is printed')
    return { code, printed }
  }
  t.match(await imported('--keys', litellm, '--admin-key-env', 'MASTER', '--dry-run'), { code: 0 })
  const first = await imported('--keys', litellm, '--admin-key-env', 'MASTER')
  t.match(first, { code: 0, printed: /keys: 7 made, 0 there already/ })
  t.match(first.printed, /keys\[0\]\.metadata\.note +not carried/)

  const asked = (secret: string, model = 'test') =>
    gateway.chat({ model, messages: [{ role: 'user', content: 'Hi' }] }, { authorization: `Bearer ${secret}` })
  t.equal((await asked('sk-canary-plain-0001')).status, 200)
  t.equal((await asked('sk-canary-spent-0002')).status, 402, 'it had spent its limit before')
  t.equal((await asked('sk-canary-team-0003')).status, 200)
  t.equal((await asked('sk-canary-team-0003', 'other')).status, 403, 'its team may not call it')
  t.equal((await asked('sk-canary-only-0004')).status, 403)
  t.equal((await asked('sk-canary-only-0004', 'other')).status, 200)
  t.equal((await asked('sk-canary-blocked-0005')).status, 401)
  t.equal((await asked('sk-canary-expired-0006')).status, 401)
  t.equal((await asked('sk-canary-shared-0008')).status, 402, 'it had spent the budget that it shares')

  interface Key {
    readonly name: string
    readonly spent: string
    readonly preview: string
    readonly limits: readonly { readonly spent: string; readonly period: string }[]
  }
  const command = commandsOf(gateway)
  const keys = await command<Key[]>('keys.list', {})
  t.match(
    keys.find(({ preview }) => preview === 'sk-...0008'),
    { limits: [{ period: 'week', limit: '2' }], rateLimits: { rpm: 5 } },
  )
  const team = keys.find(({ preview }) => preview === 'sk-...0003')!
  t.match(team, { project: 'blue', createdBy: 'ada@example.com', rateLimits: { rpm: 50, tpm: 9000, concurrency: 3 } })
  t.ok(Number(team.spent) > 1.25, 'what it spends comes on top')
  t.match(team.limits, [{ period: 'month', limit: '1000000', spent: team.spent }])
  t.match(await command('projects.list', { organization: 'default' }), [
    {},
    { name: 'blue', rateLimits: { rpm: 70 }, limits: [{ limit: '9', period: 'total' }] },
  ])
  t.match(await command('members.list', { organization: 'default' }), [
    {},
    { email: 'eight@example.com', limits: [{ limit: '40', period: 'week' }] },
    { email: 'ada@example.com', projects: ['blue'] },
    { email: 'seven@example.com', limits: [] },
  ])
  t.strictSame(await command('usage.check', {}), { differences: [] })

  const again = await imported('--keys', litellm, '--admin-key-env', 'MASTER')
  t.match(again, { code: 0, printed: /keys: 0 made, 7 there already/ })
  const kept = await command<Key[]>('keys.list', {})
  t.equal(kept.length, keys.length)
  t.equal(kept.find(({ preview }) => preview === 'sk-...0003')!.spent, team.spent)
  t.equal((await command<unknown[]>('members.list', { organization: 'default' })).length, 4)

  await gateway.writeFile('keys.json', JSON.stringify(OLD_KEYS))
  t.match(await imported('--keys', 'keys.json'), { printed: /0 made, 7 there already/ })
  const csv = `token,key_alias,spend,models,max_budget,blocked,expires,user_id,budget_id,metadata\n${hashOf('sk-canary-csv-0007')},"from, csv",0.5,"{other,test}",3,f,2100-01-01 00:00:00+00,42,tier,"{""a"": ""canary-csv""}"\n`
  await gateway.writeFile('keys.csv', csv)
  const ofCsv = await imported('--keys', 'keys.csv')
  t.match(ofCsv, { code: 0, printed: /1 made, 0 there already/ })
  t.match(ofCsv.printed, /keys\[0\]\.budget_id +not carried +import from the address/)
  t.equal((await asked('sk-canary-csv-0007', 'other')).status, 200)
  t.match((await command<Key[]>('keys.list', {})).at(-1), {
    name: 'from, csv',
    createdBy: '42@users.invalid',
    expiresAt: '2100-01-01T00:00:00.000Z',
  })
  const spelled = [
    oldKey('sk-canary-spelled-0010', { user_id: 'ADA@Example.com' }),
    oldKey('sk-canary-spelled-0011', { user_id: 'Ada@example.COM', team_alias: 'blue', team_id: 't-1' }),
  ]
  await gateway.writeFile('spelled.json', JSON.stringify(spelled))
  t.match(await imported('--keys', 'spelled.json'), { code: 0, printed: /2 made, 0 there already/ })
  t.match((await command<Key[]>('keys.list', {})).slice(-2), [
    { createdBy: 'ada@example.com' },
    { createdBy: 'ada@example.com' },
  ])
  await gateway.writeFile('group.json', JSON.stringify([oldKey('sk-canary-group-0009', { models: ['beta-group'] })]))
  t.match(await imported('--keys', 'group.json'), { code: 0, printed: /cannot call it: beta-group/ })
  const refused = await imported('--keys', litellm)
  t.match(refused, { code: 1, printed: /--admin-key-env is missing/ })
  t.match(await imported('--keys', litellm, '--admin-key-env', 'GATEWAY_ADMIN'), { code: 1, printed: /status 401/ })
})

t.test('both catalogues are compared by one small request for each model', async t => {
  const asked: { readonly path: string; readonly body: Record<string, unknown> }[] = []
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: object, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    if (request.headers.authorization !== 'Bearer sk-admin-canary') return answer(401, { error: {} })
    const entries = ['test', 'gone', 'vectors', 'drawn', 'any/*'].map(id => ({ id, object: 'model' }))
    if (request.url === '/v1/models') return answer(200, { data: entries })
    const modes = { vectors: 'embedding', drawn: 'image_generation' }
    const info = Object.entries(modes).map(([model_name, mode]) => ({ model_name, model_info: { mode } }))
    if (request.url === '/model/info') return answer(200, { data: info })
    const body = JSON.parse(await new Response(request).text()) as Record<string, unknown>
    asked.push({ path: request.url!, body })
    if (body.model === 'other') return answer(400, { error: { message: 'canary' } })
    answer(200, { model: `${body.model}-1` }, { 'x-litellm-response-cost': '12.5' })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const compared = async (args: string[], env: Record<string, string>) => {
    const printed = { out: '', progress: '' }
    const code = await run(['import', 'litellm', '--compare', address, ...args], {
      env: { GATEWAY_ADMIN: gateway.adminUrl, GATEWAY_ADMIN_TOKEN: gateway.token, MASTER: 'sk-admin-canary', ...env },
      cwd: gateway.dir,
      out: text => {
        printed.out += String(text)
      },
      err: text => {
        printed.out += text
      },
      progress: text => {
        printed.progress += text
      },
    })
    return { code, ...printed }
  }
  const projects = await commandsOf(gateway)<{ id: string }[]>('projects.list', { organization: 'default' })
  const pays = ['--project', projects[0]!.id]
  const found = await compared(['--admin-key-env', 'MASTER', '--json', ...pays], {})
  t.equal(found.code, 0, found.out)
  t.notMatch(found.out, /canary/)
  t.match(found.progress, /compared 6 of 6 models/)
  interface Row {
    readonly model: string
    readonly differences: readonly string[]
  }
  const rows = (JSON.parse(found.out) as { compared: Row[] }).compared
  t.strictSame(
    rows.map(({ model, differences }) => [model, differences]),
    [
      ['any/*', ['missing here']],
      ['drawn', ['missing here']],
      ['gone', ['missing here', 'status 200 there, 404 here']],
      ['other', ['new here']],
      ['test', ['another cost']],
      ['vectors', ['missing here', 'status 200 there, 404 here']],
    ],
  )
  t.match(rows[4], {
    operation: 'chat',
    old: { isListed: true, status: 200, model: 'test-1', cost: '12.5' },
    new: { isListed: true, status: 200, model: 'test' },
  })
  t.strictSame(asked.map(({ path, body }) => [body.model, path, body.max_tokens]).sort(), [
    ['gone', '/v1/chat/completions', 1],
    ['other', '/v1/chat/completions', 1],
    ['test', '/v1/chat/completions', 1],
    ['vectors', '/v1/embeddings', undefined],
  ])
  const table = await compared(['--admin-key-env', 'MASTER'], { GATEWAY_API_KEY: gateway.key })
  t.match(table.out, /^test +chat +200 +200 +test-1 +test +12\.5 +[\d.]+ +another cost$/m)
  t.match(table.out, /^drawn +image_generation +not asked +not asked .* missing here$/m)
  t.match(await compared(pays, {}), { code: 1, out: /LiteLLM at .*\/v1\/models answered with status 401/ })
  t.match(await compared(['--admin-key-env', 'NONE'], {}), { code: 1, out: /the variable NONE is not set/ })
})
