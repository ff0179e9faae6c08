/** Several credentials of one provider: a refused one is put aside while the others serve. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { RealtimeClient } from '../helpers/realtime-client.ts'
import { realtimeProvider } from '../helpers/realtime-provider.ts'

type Tree = Record<string, unknown>

const GOOD = 'sk-credential-good-7a8b'
const OTHER = 'sk-credential-other-7a8b'
const refused = (status: number) => `sk-credential-refused-${status}`

const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 }
const chunk = (choice: Tree) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [choice] })}\n\n`
const streamed = `${chunk({ index: 0, delta: { role: 'assistant', content: 'Hi' } })}${chunk({ index: 0, delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`
const whole = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage,
})

/**
 * A provider that refuses a credential with the status in its name, wherever the credential stands. It answers a prompt
 * "Wait" when the test calls what `waiting` resolves with.
 */
async function startProvider(scope: Test) {
  const used: string[] = []
  let wait: (answer: () => void) => void
  const waiting = new Promise<() => void>(resolve => {
    wait = resolve
  })
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      const { headers } = request
      const shown =
        headers.authorization ?? headers['x-key'] ?? new URL(request.url!, 'http://x').searchParams.get('key')
      const secret = String(shown).replace('Bearer ', '')
      used.push(secret)
      const status = Number(/refused-(\d+)/.exec(secret)?.[1] ?? 200)
      const isStream = status === 200 && body.includes('"stream":true')
      response.writeHead(status, {
        'content-type': isStream ? 'text/event-stream' : 'application/json',
        ...(status === 429 && { 'retry-after': '600' }),
      })
      if (status !== 200) response.end(JSON.stringify({ error: { message: `No: ${secret}`, type: 'refused' } }))
      else if (body.includes('"Wait"')) wait(() => response.end(whole))
      else response.end(isStream ? streamed : whole)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.teardown(() => void server.close())
  return { used, waiting, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
}

const schemes: Record<string, Tree> = {
  bearer: { scheme: 'bearer' },
  header: { scheme: 'header', header: 'x-key' },
  query: { scheme: 'query', parameter: 'key' },
}
const statuses = [401, 402, 403, 429]
const forms = [false, true]

t.test('a refused credential is put aside, and another one serves the same request', async t => {
  const provider = await startProvider(t)
  const cases = Object.keys(schemes).flatMap(scheme =>
    statuses.flatMap(status => forms.map(stream => ({ scheme, status, stream, id: `${scheme}-${status}-${stream}` }))),
  )
  const manifestOf = (model: string, auth: unknown) => ({
    base_url: provider.url,
    auth,
    models: [{ ...testMapping, model, id: model }],
  })
  const providers = Object.fromEntries(
    cases.map(({ scheme, status, id }) => {
      const secrets = [
        { secret: refused(status), name: 'first' },
        { secret: GOOD, name: 'second' },
      ]
      return [id, manifestOf(id, { ...schemes[scheme], secrets })]
    }),
  )
  const many = [
    { secret: GOOD, weight: 3 },
    { secret: OTHER, weight: 1 },
  ]
  const gateway = await startGateway(t, {
    providers: {
      ...providers,
      shared: manifestOf('shared', many),
      spent: manifestOf('spent', { scheme: 'bearer', secrets: [{ secret: refused(401) }, { secret: refused(403) }] }),
      limited: manifestOf('limited', [
        { secret: GOOD, rpm: 2 },
        { secret: OTHER, rpm: 1 },
      ]),
      metered: manifestOf('metered', [{ secret: GOOD, tpm: 100_000 }]),
    },
  })
  const ask = (model: string, stream = false) =>
    gateway.chat({ model, stream, messages: [{ role: 'user', content: 'Hi' }] })
  const usedBy = async (work: () => Promise<unknown>) => {
    const from = provider.used.length
    await work()
    return provider.used.slice(from)
  }

  for (const { id, status, stream } of cases) {
    const used = await usedBy(async () => {
      for (let turn = 0; turn < 4; turn++) {
        const answer = await ask(id, stream)
        t.equal(answer.status, 200, id)
        const text = await answer.text()
        t.match(text, 'Hi', id)
        t.notMatch(text, 'sk-credential', id)
      }
    })
    t.equal(used.filter(secret => secret === refused(status)).length, 1, `${id}: asked once`)
    t.equal(used.filter(secret => secret === GOOD).length, 4, id)
  }

  const command = commandsOf(gateway)
  const health = await command<{ id: string; credentials: Tree[]; broken: unknown[] }[]>('providers.health')
  const [first] = health.filter(({ id }) => id === 'bearer-401-false')
  t.match(first, {
    status: 'degraded',
    broken: [],
    credentials: [{ name: 'first', circuit: 'open' }, { circuit: 'closed' }],
  })
  const explained = await command<{ candidates: Tree[] }>('route.explain', { model: 'bearer-403-true' })
  t.match(explained.candidates, [
    { circuit: 'closed', credentials: [{ name: 'first', weight: 1, circuit: 'open' }, { circuit: 'closed' }] },
  ])
  t.notMatch(JSON.stringify([health, explained]), 'sk-credential')
  t.match(await gateway.metrics(), /gateway_credentials_failing\{provider="bearer-402-true"\} 1/)
  const shares = await usedBy(async () => {
    for (let turn = 0; turn < 12; turn++) await (await ask('shared')).text()
  })
  t.equal(shares.filter(secret => secret === GOOD).length, 9, 'three of four requests')

  for (let turn = 0; turn < 3; turn++) {
    const body = { model: 'metered', max_tokens: 2 ** 40, messages: [{ role: 'user', content: 'Hi' }] }
    t.equal((await gateway.chat(body)).status, 200, 'a limit of tokens holds whatever a request asks for')
  }

  const longest = { model: 'metered', max_tokens: 2 ** 40 }
  const slow = gateway.chat({ ...longest, messages: [{ role: 'user', content: 'Wait' }] })
  const goOn = await provider.waiting
  const beside = await gateway.chat({ ...longest, messages: [{ role: 'user', content: 'Hi' }] })
  t.equal(beside.status, 200, 'a request reserves no more tokens than its model can write')
  goOn()
  t.equal((await slow).status, 200)

  const own = await command<{ id: string }>('orgs.create', { name: 'own' })
  const project = await command<{ id: string }>('projects.create', {
    organization: own.id,
    name: 'p',
    mode: 'api-keys',
  })
  for (const secret of [refused(402), GOOD, OTHER]) {
    await command('provider-keys.add', { organization: own.id, provider: 'shared', label: secret.slice(-9), secret })
  }
  const { key } = await command<{ key: string }>('keys.create', { project: project.id, name: 'k' })
  const ofOwn = await usedBy(async () => {
    for (let turn = 0; turn < 6; turn++) {
      const body = { model: 'shared', messages: [{ role: 'user', content: 'Hi' }] }
      const answer = await gateway.chat(body, { authorization: `Bearer ${key}` })
      t.equal(answer.status, 200)
      const { metadata } = (await answer.json()) as { metadata: { routing: Tree[] } }
      t.match(metadata.routing.at(-1), { apiKeyHash: /^[0-9a-f]{7}$/, credentialSource: 'byok', succeeded: true })
    }
  })
  const times = (secret: string) => ofOwn.filter(one => one === secret).length
  t.strictSame([times(refused(402)), times(GOOD), times(OTHER)], [1, 3, 3], 'keys of an organization share the load')

  const weighed = await command<{ id: string }>('orgs.create', { name: 'weighed' })
  const { id: web } = await command<{ id: string }>('projects.create', {
    ...{ organization: weighed.id, name: 'p', mode: 'api-keys' },
  })
  const add = (secret: string, more: Tree) =>
    command<Tree & { id: string }>('provider-keys.add', {
      ...{ organization: weighed.id, provider: 'shared', label: secret.slice(-9), secret },
      ...more,
    })
  const heavy = await add(GOOD, { weight: 3, tpm: 1_000_000 })
  const light = await add(OTHER, { weight: '1', rpm: '2' })
  t.match(
    [heavy, light],
    [
      { weight: 3, tpm: 1_000_000 },
      { weight: 1, rpm: 2 },
    ],
  )
  const other = await command<{ key: string }>('keys.create', { project: web, name: 'k' })
  const asked = (turns: number) =>
    usedBy(async () => {
      for (let turn = 0; turn < turns; turn++) {
        const body = { model: 'shared', messages: [{ role: 'user', content: 'Hi' }] }
        const answer = await gateway.chat(body, { authorization: `Bearer ${other.key}` })
        t.equal(answer.status, 200, await answer.text())
      }
    })
  const first8 = await asked(8)
  t.strictSame(
    [GOOD, OTHER].map(one => first8.filter(used => used === one).length),
    [6, 2],
    'three of four requests go to the heavier key',
  )
  t.strictSame(new Set(await asked(4)), new Set([GOOD]), 'the other one has served its two requests of the minute')
  const changed = await command<Tree>('provider-keys.update', { id: light.id, weight: 'none', rpm: 1, tpm: 'none' })
  t.match(changed, { weight: undefined, rpm: 1 })
  const listed = await command<Tree[]>('provider-keys.list', { organization: weighed.id })
  t.match(listed, [
    { weight: 3, tpm: 1_000_000, rpm: undefined },
    { weight: undefined, rpm: 1, tpm: undefined },
  ])
  await command('provider-keys.update', { id: heavy.id, rpm: 1 })
  t.strictSame(await asked(1), [GOOD])
  const spent = await gateway.chat(
    { model: 'shared', messages: [{ role: 'user', content: 'Hi' }] },
    { authorization: `Bearer ${other.key}` },
  )
  t.equal(spent.status, 503)
  await spent.text()

  const answer = await ask('spent')
  t.equal(answer.status, 502)
  t.match(await answer.text(), /refused the gateway's credential .* Ask its owner to replace it/)

  const limited = await usedBy(async () => {
    for (let turn = 0; turn < 3; turn++) t.equal((await ask('limited')).status, 200)
    const over = await ask('limited')
    t.equal(over.status, 503)
    t.ok(Number(over.headers.get('retry-after')) > 0)
    await over.text()
  })
  t.strictSame([...limited].sort(), [GOOD, GOOD, OTHER].sort())

  t.notMatch(gateway.stdout() + gateway.stderr(), 'sk-credential')
  t.match(gateway.stdout() + gateway.stderr(), '"scope":"credential"')
})

t.test('a session over a WebSocket goes on with the next credential', async t => {
  const provider = await realtimeProvider(t)
  for (const status of [401, 429]) {
    provider.refuse = { status, body: '{}', secret: refused(status) }
    const gateway = await startGateway(t, {
      providers: {
        a: {
          base_url: provider.url,
          auth: { scheme: 'bearer', secrets: [{ secret: refused(status) }, { secret: GOOD }] },
          wires: { realtime: 'openai.realtime' },
          models: [{ model: 'voice', id: 'rt-1', pricing: { prompt: '4', completion: '16' }, supports: ['realtime'] }],
        },
      },
      models: [
        {
          ...{ id: 'voice', name: 'voice', family: 'test', input: ['text'], output: ['text'] },
          operations: ['realtime'],
        },
      ],
    })
    const client = await new RealtimeClient(gateway).opened()
    t.equal(provider.last().headers.authorization, `Bearer ${GOOD}`)
    await client.end()
    await gateway.kill()
  }
})

t.test('a reload that removes a credential leaves the others serving', async t => {
  const provider = await startProvider(t)
  const manifest = (auth: unknown) => ({
    provider: 'a',
    name: 'a',
    base_url: provider.url,
    auth,
    wires: { chat: 'openai.chat' },
    models: [testMapping],
    inline_media: false,
  })
  const gateway = await startGateway(t, { providers: { a: manifest([{ secret: refused(401) }, { secret: GOOD }]) } })
  t.equal((await gateway.chat('Hi')).status, 200)
  await gateway.writeProvider('a', manifest([{ secret: OTHER }]))
  t.equal((await gateway.admin('POST', '/reload')).status, 200)
  const from = provider.used.length
  t.equal((await gateway.chat('Hi')).status, 200)
  t.strictSame(provider.used.slice(from), [OTHER])
})
