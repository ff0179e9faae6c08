/** Raw answers of every chat wire, replayed to every client wire; an independent reader says what they mean. */
import t from 'tap'
import { openBooks } from '../helpers/books.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { aiSdk } from '../recordings/clients/ai-sdk.ts'
import { chat } from '../recordings/clients/chat.ts'
import { gemini } from '../recordings/clients/gemini.ts'
import { messages } from '../recordings/clients/messages.ts'
import { responses } from '../recordings/clients/responses.ts'
import type { Usage } from '../recordings/support/answer.ts'
import { seenBy } from '../recordings/support/differences.ts'
import { startProvider } from '../recordings/support/provider.ts'
import { type Recording, recordings } from '../recordings/support/recording.ts'
import { pricing, wires } from './matrix/wires.ts'

const AT_ONCE = 12
const LEAST = 10
const clients = [chat, messages, responses, gemini, aiSdk]
const all = recordings()

/** What failed once may not be asked again for a while: each client has a provider of its own. */
const nameFor = ({ name, expected }: Recording, client: number) => (expected.finish ? name : `${name}-${client}`)
const named = new Map(all.flatMap(recording => clients.map((_, i) => [nameFor(recording, i), recording] as const)))

const origin = await startProvider(t, named)
const gateway = await startGateway(t, {
  providers: Object.fromEntries([...named].map(([name, recording]) => [name, manifestOf(name, recording)])),
  config: { endpoints: Object.fromEntries(['chat', 'messages', 'responses', 'gemini'].map(name => [name, fast()])) },
})
const books = openBooks(t, gateway)

function fast() {
  return { ratelimit: { rpm: 1_000_000 } }
}

function manifestOf(name: string, { wire, model = wire.model }: Recording) {
  const { base, auth, headers = {}, efforts } = wire
  const supports = [...testMapping.supports, 'prompt_cache', 'web_search']
  const priced = { ...pricing, web_search: '0' }
  return {
    ...{ base_url: `${origin}/${name}${base}`, auth, headers, wires: { chat: wire.wire } },
    models: [{ model: name, id: model, supports, pricing: priced, reasoning_efforts: efforts }],
  }
}

/** In nano-USD, worked out apart from the gateway. */
function costOf({ input, output, cached, written, written1h }: Usage): number {
  const pico = (usd: string, count: number) => BigInt(Math.round(Number(usd) * 1e6)) * BigInt(count)
  const sum =
    pico(pricing.prompt, input - cached - written) +
    pico(pricing.input_cache_read, cached) +
    pico(pricing.input_cache_write, written - written1h) +
    pico(pricing.input_cache_write_1h, written1h) +
    pico(pricing.completion, output)
  return Number((sum + 500n) / 1000n)
}

const rowOf = books.prepare(
  `SELECT prompt_tokens AS input, completion_tokens AS output, ifnull(cache_read_tokens, 0) AS cached,
    ifnull(cache_write_tokens, 0) + ifnull(other_usage ->> 'input_cache_write_1h', 0) AS written,
    ifnull(reasoning_tokens, 0) AS reasoning, estimated, cost
    FROM requests WHERE request_id = ?`,
)

t.test('every client of every wire sees what the provider said', async t => {
  const cells = all.flatMap(recording => clients.map((client, i) => ({ recording, client, i })))
  const replay = async ({ recording, client, i }: (typeof cells)[number]) => {
    const { isStream, searches, schema, expected } = recording
    const tools = [...new Set(expected.calls.map(({ name }) => name))]
    const says = `${recording.name}, ${client.name}: ${recording.remark}`
    try {
      const asked = { model: nameFor(recording, i), isStream, tools, searches, schema }
      const { status, answer, failed, requestId } = await client.ask(gateway, asked)
      const wanted = seenBy(client.name, recording)
      const { form, ...said } = answer
      // JSON is compared without its spaces.
      if (schema && answer.finish === 'stop') said.text = JSON.stringify(JSON.parse(said.text))
      const got = { ...said, ...(wanted.form && { form }), usage: expected.usage && said.usage }
      t.same(got, wanted, says)
      t.equal(failed, !expected.finish, `${says}: whether it failed`)
      t.equal(status >= 400, failed && !expected.text && !expected.reasoning, `${says}: status ${status}`)
      if (!expected.finish) return
      const { written1h: _, ...counts } = expected.usage ?? {}
      const billed = expected.billed ?? expected.usage
      const row = rowOf.get(requestId)
      const told = billed ? { ...counts, estimated: 0, cost: costOf(billed) } : { estimated: 1 }
      t.match(row, told, `${says} (its row)`)
    } catch (error) {
      t.fail(`${says}: ${(error as Error).message}`)
    }
  }
  const next = async () => {
    for (let cell = cells.shift(); cell; cell = cells.shift()) await replay(cell)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
})

t.test('every wire has its recordings', async t => {
  const familyOf = (wire: string) => wire.replace(/\.(vertex|messages|generate)$/, '')
  const families = all.map(({ wire }) => familyOf(wire.wire))
  for (const { wire } of wires) {
    const count = families.filter(family => family === familyOf(wire)).length
    t.ok(count >= LEAST, `${wire}: ${count} of ${LEAST}`)
  }
})

t.test('the gateway is as it was', t => checkInvariants(t, gateway))
