/** Streams whose caller may not go on: each ends with an error in its own form, and is charged for what was delivered. */
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { commandsOf } from '../helpers/commands.ts'
import { plainGateway } from './plain.ts'

type Tree = Record<string, unknown>

const { gateway, upstream } = await plainGateway()
const command = commandsOf(gateway)
const books = openBooks(t, gateway)
const model = 'test'
const CHUNKS = ['One ', 'two ', 'six ', 'ten ', 'and ', 'more', ' of ', 'it. ']
const messages = [{ role: 'user', content: 'Hi' }]

/** What each client sends, and what the error of its wire looks like in a stream. */
const clients: readonly [name: string, path: string, body: Tree, failure: RegExp, headers?: Record<string, string>][] =
  [
    ['chat completions', '/v1/chat/completions', { model, messages, stream: true }, /"error":\{/],
    ['completions', '/v1/completions', { model, prompt: 'Hi', stream: true }, /"error":\{/],
    ['messages', '/v1/messages', { model, messages, max_tokens: 99, stream: true }, /event: error\n/],
    ['responses', '/v1/responses', { model, input: 'Hi', stream: true }, /event: response\.failed\n/],
    [
      'generateContent',
      `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
      { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
      /"error":\{/,
    ],
    [
      'AI SDK',
      '/v4/ai/language-model',
      { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
      /"type":"error"/,
      {
        ...{ 'ai-language-model-id': model, 'ai-language-model-specification-version': '4' },
        'ai-language-model-streaming': 'true',
      },
    ],
  ]

let made = 0
async function caller() {
  const organization = `ended ${++made}`
  await command('orgs.create', { name: organization })
  await command('credits.add', { organization, amount: '1' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'web' })
  const { id, key } = await command<{ id: string; key: string }>('keys.create', { project })
  return { organization, project, id, key }
}
type Caller = Awaited<ReturnType<typeof caller>>

/** What ends a caller, and the status that its next request gets. */
const ends: readonly [says: string, end: (caller: Caller) => Promise<unknown>, status: number][] = [
  ['its key is revoked', ({ id }) => command('keys.revoke', { id }), 401],
  ['its project is archived', ({ project }) => command('projects.archive', { project }), 410],
  [
    'a rule denies its model',
    ({ organization }) => command('iam.add', { organization, type: 'deny_models', models: [model] }),
    403,
  ],
]

/** A stream that has begun, and its rest: its provider says no more. */
async function begun(path: string, body: Tree, headers: Record<string, string>) {
  await upstream.script('a', [{ chunks: CHUNKS, fault: 'stall', afterChunks: 4 }])
  const response = await gateway.post(path, body, headers)
  t.equal(response.status, 200)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const read = async (isEnough: () => boolean) => {
    while (!isEnough()) {
      const { done, value } = await reader.read()
      if (done) break
      text += value
    }
    return text
  }
  await read(() => text.includes('six'))
  return () => read(() => false)
}

for (const [says, end, status] of ends) {
  for (const [name, path, body, failure, more] of clients) {
    t.test(`${name}: a stream ends when ${says}`, async t => {
      const who = await caller()
      const headers = { authorization: `Bearer ${who.key}`, ...more }
      const rest = await begun(path, body, headers)
      await end(who)
      t.match(await rest(), failure)
      const after = await gateway.post(path, body, headers)
      t.equal(after.status, status, await after.text())
      const [row] = books
        .prepare('SELECT outcome, cost, completion_tokens FROM requests WHERE key_id = ? ORDER BY at')
        .all(who.id) as Tree[]
      t.match(row, { outcome: 'aborted' })
      t.ok(Number(row!.completion_tokens) >= 3, 'what was delivered is counted')
      t.ok(Number(row!.cost) > 0, 'and charged')
    })
  }
}

t.test('a stream goes on while others end, and when rules change that do not concern it', async t => {
  const [one, other] = [await caller(), await caller()]
  const asked = { model, messages, stream: true }
  await upstream.script('a', [{ chunks: ['One ', 'two ', 'six '], chunkDelayMs: 1500 }])
  const response = await gateway.chat(asked, { authorization: `Bearer ${one.key}` })
  await command('keys.revoke', { id: other.id })
  await command('iam.add', { organization: one.organization, type: 'deny_models', models: ['dear'] })
  const text = await response.text()
  t.match(text, /six /)
  t.match(text, /\[DONE\]/)
  t.notMatch(text, /"error"/)
})
