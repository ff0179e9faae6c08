/** The longest time for which the event loop does nothing else while stored responses are read, one or a hundred at once. */
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { scripted } from '../helpers/scripted.ts'
import { watchTurns } from './turns.ts'

const TRIES = Number(process.env.WAIT_TRIES ?? 3)
const AT_MOST_MS = 100
const AT_ONCE = 100

const provider = await scripted(t)
const turns = await watchTurns(t)
const gateway = await startGateway(t, {
  env: turns.env,
  providers: {
    chat: {
      base_url: provider.url,
      wires: { chat: 'openai.chat' },
      models: [{ ...testMapping, model: 'm', id: 'x-1' }],
    },
  },
  models: [
    {
      ...{ id: 'm', name: 'M', family: 'test', input: ['text'], output: ['text'] },
      ...{ context_length: 1_000_000, max_output: 64_000, stability: 'stable' },
    },
  ],
})
const command = commandsOf(gateway)

/** The key of an organization of its own: rate limits are of one. */
async function newKey(): Promise<string> {
  const { id: organization } = await command<{ id: string }>('orgs.create', {
    name: `reads-${++made}`,
    account: 'open',
  })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'p', responses: '1d' })
  return (await command<{ key: string }>('keys.create', { project })).key
}
let made = 0
const said = (content: string) => ({
  json: {
    choices: [{ message: { content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 9 },
  },
})
const rows: Record<string, { input: unknown; answer: string }> = {
  'an answer of 3.6 MB': { input: 'Hi', answer: 'ab '.repeat(1_200_000) },
  'an answer of 1.8 MB with escapes': { input: 'Hi', answer: '\n"'.repeat(900_000) },
  'a message of 3.6 MB': { input: 'ab '.repeat(1_200_000), answer: 'Hi' },
  '40,000 messages': {
    input: Array.from({ length: 40_000 }, () => ({ role: 'user', content: 'Some words' })),
    answer: 'Hi',
  },
}

for (const [what, { input, answer }] of Object.entries(rows)) {
  t.test(`MF-02 ${what}`, async t => {
    provider.answers(said(answer))
    const authorization = `Bearer ${await newKey()}`
    const ask = (body: object) => gateway.post('/v1/responses', { model: 'm', ...body }, { authorization })
    const read = (path: string) => fetch(`${gateway.url}/v1/responses/${path}`, { headers: { authorization } })
    const made = await ask({ input })
    const { id, store } = (await made.json()) as { id: string; store: boolean }
    t.ok(store, 'it is stored')
    provider.answers(said('Hi'))
    const acts: Record<string, () => Promise<Response>> = {
      read: () => read(id),
      'its input listed': () => read(`${id}/input_items?limit=100`),
      continued: () => ask({ previous_response_id: id, store: false, input: 'On' }),
    }
    for (const [does, act] of Object.entries(acts)) {
      for (const count of does === 'continued' ? [1] : [1, AT_ONCE]) {
        const waits: number[] = []
        for (let tries = 0; tries < TRIES; tries++) {
          await turns.longestMs()
          await Promise.all(
            Array.from({ length: count }, async () => {
              const response = await act()
              t.ok(response.status === 200 || (count > 1 && response.status === 529), `${response.status}`)
              await response.arrayBuffer()
            }),
          )
          waits.push(await turns.longestMs())
        }
        t.comment(`${what}, ${does} ${count}: ${waits.map(Math.round).join(' ')}`)
        figure(t, {
          id: 'MF-02',
          what: `${what}, ${does} by ${count}`,
          value: Math.max(...waits),
          unit: 'ms',
          atMost: AT_MOST_MS,
        })
      }
    }
  })
}

t.test('the gateway is as it was', t => checkInvariants(t, gateway))
