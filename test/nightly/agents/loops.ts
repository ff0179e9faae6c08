/**
 * Unmodified agents over every chat wire: two questions that need tools, several at once, with thinking. The upstreams
 * refuse what they did not sign as they signed it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import t from 'tap'
import { everyWire } from '../../e2e/matrix/gateway.ts'
import { returns, wires } from '../../e2e/matrix/wires.ts'
import { commandsOf } from '../../helpers/commands.ts'
import { checkInvariants } from '../../helpers/invariants.ts'
import type { Step } from '../../helpers/upstream.ts'

interface Seen {
  readonly cities?: string[]
  readonly texts?: string[]
  readonly response?: string | null
  readonly error?: string
}

/** A client of `drive.mjs` or `drive.py`. */
export interface Row {
  readonly client: string
  /** Of a model's name, where that chooses the API. */
  readonly prefix?: string
  readonly api: 'responses' | 'chat' | 'gemini'
  /** It sends no reasoning back of models whose names it does not know; the gateway keeps it, but for the same wire. */
  readonly drops?: true
}

/** What a project keeps, and whether the client goes on from it by `previous_response_id`. */
const states = [
  { says: 'the project keeps nothing', kept: false, chained: false },
  { says: 'the project keeps responses', kept: true, chained: false },
  { says: 'each goes on from the response before it', kept: true, chained: true },
]

const cities = ['Oslo', 'Rome', 'Łódź', 'Paris', 'Bergen', 'Turku']
const city = (name: string) => ({ name: 'weather', args: { city: name } })
const usage = { prompt: 40, completion: 9 }
const thoughts = ['I ask for 🙂 two', 'and for two more', 'again two'].map((text, i) => ({
  text,
  args: { city: cities[2 * i]! },
}))
const turn = (i: number): Step => ({
  reasoning: thoughts[i]!.text,
  toolCalls: cities.slice(2 * i, 2 * i + 2).map(city),
  usage,
})
const steps: Step[] = [turn(0), turn(1), { text: 'Cold everywhere', usage }, turn(2), { text: 'Cold still', usage }]
const answers = ['Cold everywhere', 'Cold still']

const { upstream, gateway } = await everyWire()
const command = commandsOf(gateway)
const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'agents', account: 'open' })
const keyOf = async (name: string, options: object) => {
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name, ...options })
  return (await command<{ key: string }>('keys.create', { project })).key
}
const keys = { kept: await keyOf('keeps', { responses: '1d' }), plain: await keyOf('plain', {}) }

/** Starts a driver; a job resolves with the line that it writes. */
export function start(program: string, args: string[], env: NodeJS.ProcessEnv): (job: object) => Promise<Seen> {
  const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const ended = once(child, 'close')
  t.teardown(() => {
    child.stdin.end()
    return ended
  })
  return async job => {
    child.stdin.write(`${JSON.stringify(job)}\n`)
    const [line] = (await Promise.race([once(lines, 'line'), ended.then(() => [])])) as [string?]
    return line === undefined ? { error: `${args[0]} has ended` } : JSON.parse(line)
  }
}

/** A test for each client, state and mode. */
export function play(rows: readonly Row[], run: (job: object) => Promise<Seen>): void {
  const only = process.env.AGENTS_ONLY?.split(',')
  for (const { client, prefix, api, drops } of rows.filter(row => !only || only.includes(row.client))) {
    for (const { says, kept, chained } of api === 'responses' ? states : states.slice(0, 1)) {
      for (const streams of [false, true]) {
        const name = [client, prefix, says, streams ? 'streamed' : 'whole'].filter(Boolean).join(', ')
        t.test(`${name}: two questions with tools and thinking, over every wire`, async t => {
          await upstream.reset()
          const key = kept ? keys.kept : keys.plain
          for (const wire of wires) {
            await upstream.script(wire.id, steps)
            const job = { client, prefix, origin: gateway.url, key, model: wire.id, chained, streams }
            const { response, ...seen } = await run(job)
            // Calls of one turn may run in any order.
            const called = seen.cities?.toSorted()
            t.same({ ...seen, cities: called }, { texts: answers, cities: cities.toSorted() }, wire.wire)
            const requests = await upstream.record(wire.id)
            t.same(
              requests.map(({ refused }) => refused),
              steps.map(() => null),
              `${wire.wire}: nothing is refused`,
            )
            const last = requests.at(-1)?.body
            t.equal(
              JSON.stringify(last).match(/\bcold\b/g)?.length,
              cities.length,
              `${wire.wire}: each call has its result`,
            )
            const isLost = wire.replays === 'nothing' || (drops && !chained && wire.wire === 'openai.responses')
            for (const thought of thoughts) {
              t.equal(returns(wire, last, thought), !isLost, `${wire.wire}: its thinking comes back`)
            }
            if (!response) continue
            const found = await gateway.get(`/v1/responses/${response}`, { authorization: `Bearer ${key}` })
            t.equal(found.status, kept ? 200 : 404, `${wire.wire}: the last response`)
            const { previous_response_id: previous } = (await found.json()) as { previous_response_id?: string | null }
            t.equal(typeof previous === 'string', chained, `${wire.wire}: it goes on from another`)
          }
        })
      }
    }
  }
  t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
}
