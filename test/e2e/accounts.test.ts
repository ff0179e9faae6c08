/** The same tokens cost the same, streamed and whole, to the last unit, on every wire and in both client forms. */

import t from 'tap'
import type { Json } from '../../src/json/json.ts'
import { chat } from '../helpers/chat.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { readEvents } from '../helpers/sse.ts'
import type { UpstreamUsage } from '../helpers/upstream.ts'
import { everyWire } from './matrix/gateway.ts'
import { pricing, wires } from './matrix/wires.ts'

type Claim = Partial<UpstreamUsage> & { prompt: number; completion: number }

const { upstream, gateway } = await everyWire()

/** Tokens whose cost rounds down and up, and too many for a float to be exact about by accident. */
const claims: readonly (Claim | null)[] = [
  { prompt: 1, completion: 1 },
  { prompt: 7, completion: 2 },
  { prompt: 1003, completion: 7, cached: 301 },
  { prompt: 1003, completion: 7, cached: 1003 },
  { prompt: 5003, completion: 77, cached: 301, written: 499 },
  { prompt: 5003, completion: 77, cached: 301, written: 4001, written1h: 1999 },
  { prompt: 41, completion: 9, reasoning: 9 },
  { prompt: 123_457, completion: 32_765, cached: 123_455, reasoning: 31 },
  null,
]

const messages = [{ role: 'user', content: 'How much is it? 🙂' }]
const step = (usage: Claim | null) => ({
  reasoning: 'Let me count',
  chunks: ['It ', 'is ', 'dear ', '🙂'],
  usage: usage && { reasoning: 0, ...usage },
})
const part = (usage: Json, name: string) => (usage[name] ?? {}) as Record<string, number>

/** The cost of an answer's usage in USD, worked out in pico-USD apart from the gateway and rounded once. */
function costOf(usage: Json): number {
  const pico = (usd: string) => BigInt(Math.round(Number(usd) * 1e6))
  const { cached_tokens: cached = 0, cache_creation: written } = part(usage, 'prompt_tokens_details') as unknown as {
    cached_tokens?: number
    cache_creation?: Record<string, number>
  }
  const short = written?.ephemeral_5m_input_tokens ?? 0
  const long = written?.ephemeral_1h_input_tokens ?? 0
  const sum = [
    [Number(usage.prompt_tokens) - cached - short - long, pricing.prompt],
    [cached, pricing.input_cache_read],
    [short, pricing.input_cache_write],
    [long, pricing.input_cache_write_1h],
    [Number(usage.completion_tokens), pricing.completion],
  ] as const
  const exact = sum.reduce((total, [tokens, rate]) => total + BigInt(tokens) * pico(rate), 0n)
  return Number((exact + 500n) / 1000n) / 1e9
}

for (const claim of claims) {
  const says = claim === null ? 'an answer without usage' : JSON.stringify(claim)
  t.test(`chat: ${says} costs the same streamed and whole, on every wire`, async t => {
    await Promise.all(
      wires.map(async ({ wire, id }) => {
        await upstream.script(id, [step(claim)])
        const body = { model: id, messages, reasoning_effort: 'high' }
        const whole = (await chat(gateway, 'whole', body)).usage!
        const streamed = (await chat(gateway, 'stream', body)).usage!
        t.strictSame(streamed, whole, wire)
        t.equal(whole.cost, costOf(whole), `${wire}: its cost is that of its tokens`)
        const parts = part(whole, 'cost_details')
        const nano = (usd = 0) => BigInt(Math.round(usd * 1e9))
        const sum = [parts.input_cost, parts.cached_input_cost, parts.cache_write_input_cost, parts.output_cost]
        t.equal(
          sum.map(nano).reduce((a, b) => a + b),
          nano(parts.total_cost),
          `${wire}: the parts are the whole`,
        )
        if (claim === null) t.match(whole.info, /estimated/, wire)
        else {
          const { prompt, completion } = claim
          t.match(
            whole,
            { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
            wire,
          )
        }
      }),
    )
  })

  t.test(`messages: ${says} costs the same streamed and whole, on every wire`, async t => {
    await Promise.all(
      wires.map(async ({ wire, id }) => {
        await upstream.script(id, [step(claim)])
        const body = { model: id, max_tokens: 99, messages }
        const whole = (await (await gateway.post('/v1/messages', body)).json()) as { usage: Json }
        const { data } = await readEvents<{ type: string; usage?: Json }>(
          await gateway.post('/v1/messages', { ...body, stream: true }),
        )
        const streamed = data.findLast(({ type }) => type === 'message_delta')?.usage
        t.strictSame(streamed, whole.usage, wire)
        t.type(whole.usage.cost, 'number', wire)
      }),
    )
  })
}

t.test('the gateway is as it was', t => checkInvariants(t, gateway, upstream))
