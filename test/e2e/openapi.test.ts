/** `GET /openapi.json` as clients read it: every example is sent, and every answer is one that the document declares. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, upstreamSecret } from '../helpers/gateway.ts'
import { OpenApi, type Operation, requestOf } from '../helpers/openapi.ts'
import { type Step, startUpstream } from '../helpers/upstream.ts'

const POLL_MS = 20
const upstream = await startUpstream(t, { key: upstreamSecret })
const gateway = await startGateway(t, {
  providers: { secretive: { base_url: upstream.url('secretive'), inline_media: true } },
  config: {
    jobs: { poll: `${POLL_MS}ms`, poll_max: '40ms' },
    catalog: { extends: 'packaged', models: './models.d', providers: '../providers.d' },
  },
})
const command = commandsOf(gateway)
const read = await fetch(`${gateway.url}/openapi.json`)
const text = await read.text()
const api = new OpenApi(JSON.parse(text))

const send = ({ path, init }: ReturnType<typeof requestOf>) => {
  const headers = { authorization: `Bearer ${gateway.key}`, ...init.headers }
  return fetch(gateway.url + path, { ...init, headers })
}

t.test('the document is public, cached by its tag, and packed for clients that take it', async t => {
  t.equal(read.status, 200)
  t.match(read.headers.get('content-type'), 'application/json')
  const etag = read.headers.get('etag')!
  const again = await fetch(`${gateway.url}/openapi.json`, { headers: { 'if-none-match': etag } })
  t.equal(again.status, 304)
  t.equal(await again.text(), '')
  t.equal(again.headers.get('etag'), etag)
  t.equal(again.headers.get('content-length'), null, 'a 304 has the length of no body')
  t.equal((await fetch(`${gateway.url}/openapi.json`, { headers: { 'if-none-match': '*' } })).status, 304)
  t.equal(read.headers.get('content-encoding'), 'gzip', 'fetch takes it')
  const plain = await fetch(`${gateway.url}/openapi.json`, { headers: { 'accept-encoding': 'identity' } })
  t.equal(plain.headers.get('content-encoding'), null)
  t.equal(await plain.text(), text)
  t.equal((await fetch(`${gateway.url}/openapi.json`, { method: 'POST' })).status, 405)
})

t.test('the document names no model, provider or secret of the operator', async t => {
  for (const word of ['secretive', upstreamSecret, gateway.key, 'test-1']) t.notMatch(text, word)
})

t.test('every example is answered with success, as the document declares it', async t => {
  let sent = 0
  for (const operation of api.operations) {
    for (const example of operation.examples) {
      const response = await send(requestOf(operation, example))
      t.ok(response.ok, `${operation.id}, ${example.name}: ${response.status}`)
      t.equal(await api.answerIssue(operation, response), undefined, `${operation.id}, ${example.name}`)
      sent++
    }
  }
  t.ok(sent > 50, `${sent} examples`)
})

/** Reads a video until it has ended, at the pace of its polls. */
async function ready(id: string, key: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${gateway.url}/v1/videos/${id}`, { headers: { authorization: `Bearer ${key}` } })
    const { status } = (await response.json()) as { status: string }
    if (status === 'completed') return
    if (status !== 'queued' && status !== 'in_progress') throw new Error(`the video is ${status}`)
    await setTimeout(POLL_MS)
  }
}

t.test('every operation without a body succeeds, with what a link or an example names', async t => {
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'keeps', account: 'open' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'p', responses: '1d' })
  const { key } = await command<{ key: string }>('keys.create', { project })
  const read = new Set<string>()
  const check = async (operation: Operation, ids: Record<string, string> = {}) => {
    const request = requestOf(operation, operation.examples[0], ids)
    const headers = { ...request.init.headers, authorization: `Bearer ${key}` }
    const response = await fetch(gateway.url + request.path, { ...request.init, headers })
    const kept = response.clone()
    t.ok(response.ok, `${operation.id}: ${response.status}`)
    t.equal(await api.answerIssue(operation, response), undefined, operation.id)
    read.add(operation.id)
    return kept
  }
  const reads = api.operations.filter(
    one => one.examples.length === 0 && one.method === 'get' && !one.path.includes('id}'),
  )
  const browsers = ['openRealtimeSession', 'showConsent']
  for (const operation of reads) if (!browsers.includes(operation.id)) await check(operation)
  for (const id of ['createResponse', 'createVideo']) {
    const { id: made } = (await (await check(api.operation(id))).json()) as { id: string }
    if (id === 'createVideo') await ready(made, key)
    for (const link of api.operation(id).links) await check(api.operation(link), { id: made })
  }
  const rest = api.operations.filter(({ id, examples }) => !read.has(id) && examples.length === 0).map(({ id }) => id)
  t.strictSame(rest.sort(), [
    ...['cancelResponse', 'createToken', 'downloadVideoByLogId', 'giveConsent', 'openRealtimeSession', 'revokeToken'],
    'showConsent',
  ])
})

t.test('an operation refuses a request without a key, with a body that it declares', async t => {
  for (const operation of api.operations.filter(({ isOpen }) => !isOpen)) {
    const { path, init } = requestOf(operation, operation.examples[0], { id: 'none', log_id: 'none' })
    const response = await fetch(gateway.url + path, init)
    t.ok([401, 426, 400].includes(response.status), `${operation.id}: ${response.status}`)
    t.equal(await api.answerIssue(operation, response), undefined, operation.id)
  }
})

t.test('an operation refuses a body that is not its own, with a body that it declares', async t => {
  for (const operation of api.operations.filter(({ examples }) => examples.length > 0)) {
    for (const body of ['{', '[]', '{}', '{"model":5}', '{"model":"none","messages":[]}', 'null', '"text"']) {
      const { path, init } = requestOf(operation, operation.examples[0])
      const headers = { ...(init.headers as Record<string, string>), 'content-type': 'application/json' }
      const response = await send({ path, init: { ...init, headers, body } })
      t.ok(response.status < 500, `${operation.id} ${body}: ${response.status}`)
      t.equal(await api.answerIssue(operation, response), undefined, `${operation.id} ${body}`)
    }
  }
})

/** Answers of providers, and failures, in the forms that they take on the wires of clients. */
const steps: Readonly<Record<string, Step>> = {
  text: { text: 'Hello.' },
  reasoning: { reasoning: 'Let me think.', text: 'Hello.' },
  tools: { toolCalls: [{ name: 'get_weather', args: { city: 'Paris' } }] },
  refusal: { refusal: 'I cannot.' },
  length: { text: 'Hel', finish: 'length' },
  filter: { text: 'Hel', finish: 'content_filter' },
  unreported: { text: 'Hello.', usage: null },
  cached: { text: 'Hello.', usage: { prompt: 2000, cached: 1000, written: 500, reasoning: 3 } },
  throttled: { status: 429, body: { error: { message: 'slow down' } } },
  invalid: { status: 400, body: { error: { message: 'no', type: 'invalid_request_error', code: null } } },
  failing: { status: 500, body: { error: { message: 'broken' } } },
  truncated: { text: 'Hello there.', fault: 'truncate', afterChunks: 1 },
}
const wires = ['createChatCompletion', 'createMessage', 'createResponse', 'createCompletion', 'generateContent']
const streams = ['streamGenerateContent', 'callLanguageModelV1', 'callLanguageModelV3', 'callLanguageModelV4']

/** The first examples of an operation with the model of the scripted provider, whole and streamed. */
function scripted(operation: Operation): ReturnType<typeof requestOf>[] {
  return operation.examples
    .filter(({ name }) => name !== 'image')
    .map(example => {
      const { value } = example
      const { path, init } = requestOf(operation, {
        ...example,
        value: 'model' in value ? { ...value, model: 'test' } : value,
      })
      const headers = {
        ...(init.headers as object),
        ...('ai-language-model-id' in init.headers! && { 'ai-language-model-id': 'test' }),
      }
      return { path: path.replace('/demo:', '/test:'), init: { ...init, headers } }
    })
}

t.test('answers and failures of providers come in the declared form of every chat wire', async t => {
  for (const [name, step] of Object.entries(steps)) {
    for (const id of [...wires, ...streams]) {
      const operation = api.operation(id)
      for (const request of scripted(operation)) {
        await upstream.script('secretive', [step, step, step])
        const response = await send(request)
        t.equal(await api.answerIssue(operation, response), undefined, `${name}: ${id} ${String(request.init.body)}`)
      }
    }
  }
})
