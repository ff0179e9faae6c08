/** Several credentials of one provider: a refused one is put aside while the others serve. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startGateway, testMapping } from '../helpers/gateway.ts'

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

/** A provider that refuses a credential with the status in its name, wherever the credential stands. */
async function startProvider(scope: Test) {
  const used: string[] = []
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
      else response.end(isStream ? streamed : whole)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.teardown(() => void server.close())
  return { used, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
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

  const health = await (await gateway.admin('GET', '/providers/health')).text()
  t.notMatch(health, 'sk-credential')
  const shares = await usedBy(async () => {
    for (let turn = 0; turn < 12; turn++) await (await ask('shared')).text()
  })
  t.equal(shares.filter(secret => secret === GOOD).length, 9, 'three of four requests')

  const answer = await ask('spent')
  t.equal(answer.status, 502)
  t.match(await answer.text(), /refused the gateway's credential/)

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
