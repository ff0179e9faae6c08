/** What is asked of every wire, and what its client must see; the wires that differ stand in `support.ts`. */
import type { Json } from '../../../src/json/json.ts'
import type { Message, Mode, Turn } from '../../helpers/chat.ts'
import type { Entry, Step } from '../../helpers/upstream.ts'
import { type ChatWire, pricing, returns } from './wires.ts'

/** One wire in one mode, as a case sees it. */
export interface Cell {
  readonly wire: ChatWire
  readonly mode: Mode
  /** What the upstream answers to the next requests. */
  script(...steps: Step[]): Promise<void>
  ask(body: Json, mode?: Mode): Promise<Turn>
  /** The requests that the upstream got since `script`. */
  record(): Promise<Entry[]>
}

export interface Case {
  /** A row of the support table. */
  readonly name: string
  readonly modes: readonly Mode[]
  /** Plays the case and says what a client saw of it. */
  play(cell: Cell): Promise<Json>
  readonly expected: Json
}

const both: readonly Mode[] = ['whole', 'stream']
const user = (content: unknown): Json => ({ role: 'user', content })
const hi = [user('Hi')]
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const tools = [{ type: 'function', function: { name: 'weather', description: 'Weather of a city', parameters } }]
const schema = {
  type: 'object',
  properties: { surname: { type: 'string' } },
  required: ['surname'],
  additionalProperties: false,
}
const weather = (city: string) => ({ name: 'weather', args: { city } })
const tokens = { prompt: 40, completion: 9, reasoning: 0 }
const words = ['one ', 'two ', 'three ', '🙂']

/** What a client sees of a turn, without ids and routing. */
const seen = ({ status, message, finish, usage }: Turn): Json => ({
  status,
  content: message.content || null,
  reasoning: message.reasoning ?? null,
  calls: (message.tool_calls ?? []).map(({ function: f }) => [f.name, JSON.parse(f.arguments)]),
  finish,
  usage: counts(usage),
})
const plain = { status: 200, content: null, reasoning: null, calls: [], finish: 'stop', usage: countsOf(40, 9) }

function counts(usage: Json | null): Json {
  const read = (part: string, name: string) => ((usage?.[part] as Json | undefined)?.[name] as number | undefined) ?? 0
  return {
    prompt: usage?.prompt_tokens,
    completion: usage?.completion_tokens,
    total: usage?.total_tokens,
    cached: read('prompt_tokens_details', 'cached_tokens'),
    written: read('prompt_tokens_details', 'cache_write_tokens'),
    reasoning: read('completion_tokens_details', 'reasoning_tokens'),
    cost: usage?.cost,
    estimated: usage?.info !== undefined,
  }
}

/** The same from what the upstream claims, with the cost worked out apart from the gateway, in integers. */
export function countsOf(prompt: number, completion: number, over: { cached?: number; written?: number } = {}): Json {
  const { cached = 0, written = 0 } = over
  const pico = (usd: string) => BigInt(Math.round(Number(usd) * 1e6))
  const input =
    BigInt(prompt - cached - written) * pico(pricing.prompt) + BigInt(cached) * pico(pricing.input_cache_read)
  const rest = BigInt(written) * pico(pricing.input_cache_write) + BigInt(completion) * pico(pricing.completion)
  const cost = Number((input + rest + 500n) / 1000n) / 1e9
  return { prompt, completion, total: prompt + completion, cached, written, reasoning: 0, cost, estimated: false }
}

const failure = ({ status, message, finish, error }: Turn): Json => ({
  status,
  content: message.content,
  finish,
  error: error && { type: error.type, code: error.code, message: error.message },
})

const oneTurn =
  (step: Step, body: Json = { messages: hi }, view: (turn: Turn) => Json = seen): Case['play'] =>
  async cell => {
    await cell.script({ usage: tokens, ...step })
    return view(await cell.ask(body))
  }

const thoughts = ['first 🙂', 'second', 'third'].map((text, i) => ({ text, args: { city: `city ${i}` } }))

const results = (message: Message): Json[] =>
  (message.tool_calls ?? []).map(({ id }, i) => ({ role: 'tool', tool_call_id: id, content: `${i} degrees` }))

export const cases: readonly Case[] = [
  {
    name: 'plain answer',
    modes: ['whole'],
    play: oneTurn({ text: 'Hello there' }),
    expected: { ...plain, content: 'Hello there' },
  },
  {
    name: 'streamed answer',
    modes: ['stream'],
    play: oneTurn({ chunks: words }),
    expected: { ...plain, content: words.join('') },
  },
  {
    name: 'tools',
    modes: both,
    async play({ script, ask }) {
      await script({ toolCalls: [weather('Oslo')], usage: tokens }, { text: 'Cold', usage: tokens })
      const first = await ask({ messages: hi, tools })
      const next = await ask({ messages: [...hi, first.message, ...results(first.message)], tools })
      return { first: seen(first), next: seen(next) }
    },
    expected: {
      first: { ...plain, calls: [['weather', { city: 'Oslo' }]], finish: 'tool_calls' },
      next: { ...plain, content: 'Cold' },
    },
  },
  {
    name: 'parallel tools, streamed',
    modes: ['stream'],
    async play({ script, ask }) {
      const cities = ['Oslo', 'Rome', 'Łódź']
      await script({ toolCalls: cities.map(weather), usage: tokens }, { text: 'Cold and warm', usage: tokens })
      const first = await ask({ messages: hi, tools })
      const ids = new Set(first.message.tool_calls?.map(({ id }) => id))
      // Results in another order than the calls: each belongs to its id.
      const next = await ask({ messages: [...hi, first.message, ...results(first.message).reverse()], tools })
      return { first: seen(first), ids: ids.size, next: seen(next) }
    },
    expected: {
      first: { ...plain, calls: ['Oslo', 'Rome', 'Łódź'].map(city => ['weather', { city }]), finish: 'tool_calls' },
      ids: 3,
      next: { ...plain, content: 'Cold and warm' },
    },
  },
  {
    name: 'reasoning',
    modes: both,
    play: oneTurn({ reasoning: 'Let me think', text: 'Done' }, { messages: hi, reasoning_effort: 'high' }),
    expected: { ...plain, reasoning: 'Let me think', content: 'Done' },
  },
  {
    name: 'reasoning replayed over three turns',
    modes: both,
    async play({ script, ask, record, mode, wire }) {
      const steps = thoughts.map(({ text, args }) => ({ reasoning: text, toolCalls: [{ name: 'weather', args }] }))
      await script(...steps, { text: 'Done' })
      const messages = [...hi]
      const told = []
      for (let turn = 0; turn < 4; turn++) {
        // Whole and streamed turns take turns: what a client keeps of either is the same.
        const as = (turn % 2 === 0) === (mode === 'stream') ? 'stream' : 'whole'
        const { message } = await ask({ messages, tools, reasoning_effort: 'high' }, as)
        messages.push(message, ...results(message))
        told.push(message.reasoning ?? message.content)
      }
      const last = (await record()).at(-1)!.body
      return { told, returned: thoughts.map(thought => returns(wire, last, thought)) }
    },
    expected: { told: [...thoughts.map(({ text }) => text), 'Done'], returned: [true, true, true] },
  },
  {
    name: 'image input',
    modes: both,
    async play({ script, ask, record }) {
      const answer = { text: 'A pixel', usage: tokens }
      await script(answer, answer)
      const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } }
      const parts = [{ type: 'text', text: 'What?' }, picture]
      const turn = await ask({ messages: [user(parts)] })
      const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }
      const shown = [
        { role: 'assistant', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: parts },
      ]
      const result = await ask({ messages: [...hi, ...shown], tools })
      const arrived = (await record()).map(({ body }) => JSON.stringify(body).includes(pixel))
      return { ...seen(turn), arrived, ofTool: seen(result) }
    },
    expected: {
      ...plain,
      content: 'A pixel',
      arrived: [true, true],
      ofTool: { ...plain, content: 'A pixel' },
    },
  },
  {
    name: 'structured output',
    modes: both,
    async play({ script, ask, record, wire }) {
      const args = { surname: 'Lovelace' }
      const step = wire.answersByTool ? { toolCalls: [{ name: 'json_answer', args }] } : { text: JSON.stringify(args) }
      await script({ ...step, usage: tokens })
      const json_schema = { name: 'person', schema, strict: true }
      const turn = await ask({ messages: hi, response_format: { type: 'json_schema', json_schema } })
      const arrived = JSON.stringify(await record()).includes('surname')
      return { ...seen(turn), content: JSON.parse(turn.message.content!), arrived }
    },
    expected: { ...plain, content: { surname: 'Lovelace' }, arrived: true },
  },
  {
    name: 'refusal',
    modes: both,
    // Whether it costs anything is the provider's own matter (docs/money.md#cost).
    play: oneTurn({ text: '', finish: 'content_filter' }, { messages: hi }, turn => ({ ...seen(turn), usage: null })),
    expected: { ...plain, finish: 'content_filter', usage: null },
  },
  {
    name: 'words of a refusal',
    modes: both,
    play: oneTurn({ refusal: 'I cannot help with that.', finish: 'content_filter' }, { messages: hi }, turn => ({
      finish: turn.finish,
      refusal: turn.message.refusal ?? null,
    })),
    expected: { finish: 'content_filter', refusal: 'I cannot help with that.' },
  },
  {
    name: 'length stop',
    modes: both,
    play: oneTurn({ text: 'and so on and', finish: 'length' }, { messages: hi, max_tokens: 20 }),
    expected: { ...plain, content: 'and so on and', finish: 'length' },
  },
  {
    name: 'cached tokens',
    modes: both,
    play: oneTurn({ text: 'ok', usage: { prompt: 1003, completion: 7, cached: 301 } }),
    expected: { ...plain, content: 'ok', usage: countsOf(1003, 7, { cached: 301 }) },
  },
  {
    name: 'written tokens',
    modes: both,
    play: oneTurn({ text: 'ok', usage: { prompt: 1003, completion: 7, cached: 301, written: 499 } }),
    expected: { ...plain, content: 'ok', usage: countsOf(1003, 7, { cached: 301, written: 499 }) },
  },
  {
    name: 'reasoning tokens',
    modes: both,
    play: oneTurn(
      { reasoning: 'Hm', text: 'ok', usage: { prompt: 40, completion: 9, reasoning: 5 } },
      { messages: hi, reasoning_effort: 'high' },
    ),
    expected: { ...plain, reasoning: 'Hm', content: 'ok', usage: { ...countsOf(40, 9), reasoning: 5 } },
  },
  {
    name: 'error before the answer',
    modes: both,
    async play({ script, ask }) {
      const told: Json = {}
      for (const status of [400, 429, 500]) {
        await script({ status })
        const turn = await ask({ messages: hi })
        // The code of a request's own fault is the provider's.
        const own = status === 400 ? { code: '' } : {}
        told[status] = failure({ ...turn, error: turn.error && { ...turn.error, ...own } })
      }
      return told
    },
    expected: {
      400: refused(400, 'invalid_request_error', '', 'Simulated failure 400.'),
      429: refused(
        503,
        'upstream_error',
        'upstream_rate_limited',
        'Every provider of this model is rate limited. Please retry later.',
      ),
      500: refused(
        502,
        'upstream_error',
        'all_providers_failed',
        'All providers failed. The last error was: The provider failed.',
      ),
    },
  },
  {
    name: 'error in the stream',
    modes: ['stream'],
    play: oneTurn({ chunks: words, fault: 'error-event', afterChunks: 2 }, { messages: hi }, failure),
    expected: {
      status: 200,
      content: 'one two ',
      finish: null,
      error: { type: 'upstream_error', code: 'upstream_error', message: 'The provider failed.' },
    },
  },
  {
    name: 'truncated stream',
    modes: ['stream'],
    play: oneTurn({ chunks: words, fault: 'truncate' }, { messages: hi }, failure),
    expected: {
      status: 200,
      content: words.join(''),
      finish: null,
      error: {
        type: 'upstream_error',
        code: 'upstream_stream_truncated',
        message: 'The upstream provider ended the stream before it was complete.',
      },
    },
  },
]

function refused(status: number, type: string, code: string, message: string): Json {
  return { status, content: null, finish: null, error: { type, code, message } }
}
