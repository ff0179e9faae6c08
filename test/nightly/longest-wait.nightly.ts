/**
 * The longest time for which the event loop does nothing else while the gateway serves one request: for any answer of a
 * provider of any wire to any client, and for any body, within the bounds of docs/reliability.md and beyond them.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { figure } from '../helpers/figure.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { clients } from './load.ts'
import { watchTurns } from './turns.ts'

type Tree = Record<string, unknown>

/** The worst of so many counts. */
const TRIES = Number(process.env.WAIT_TRIES ?? 3)
const AT_MOST_MS = 100
/** Rows, wires and clients whose name has this. */
const ONLY = new RegExp(process.env.WAIT_ONLY ?? '')

const times = (text: string, count: number) => text.repeat(count)
const listed = (text: string, count: number) => `[${times(`${text},`, count - 1)}${text}]`
const names = (count: number) => `{${Array.from({ length: count }, (_, at) => `"n${at}":${at}`).join()}}`
/** Objects by names that are out of order. */
const members = (count: number) =>
  `{${Array.from({ length: count }, (_, at) => `"k${(at * 7919) % 1000}":{"a":1}`).join()}}`
const quoted = (text: string) => JSON.stringify(text)

/** What an answer holds, as JSON text. */
interface Content {
  readonly text?: string
  readonly reasoning?: string
  /** Arguments of calls of `f`. */
  readonly calls?: readonly string[]
  /** Input of calls of the provider's own tools, on wires that have blocks for these. */
  readonly native?: readonly string[]
  /** Base64 of images. */
  readonly images?: readonly string[]
  /** Beside all that the wire knows. */
  readonly extra?: string
}

const extraOf = ({ extra }: Content) => (extra === undefined ? '' : `,"extra":${extra}`)
const usage = '"usage":{"prompt_tokens":9,"completion_tokens":9}'
const dataUrl = (base64: string) => `"data:image/png;base64,${base64}"`
const joined = (...parts: readonly string[][]) => parts.flat().join()

/** Answers of providers that say the same, by their wire. */
const wires: Record<string, { base: string; answer(content: Content): string }> = {
  'openai.chat': {
    base: '/v1',
    answer(content) {
      const { text = '"a"', reasoning, calls = [], images = [] } = content
      const said = calls.map(
        (args, at) =>
          `{"index":${at},"id":"c${at}","type":"function","function":{"name":"f","arguments":${quoted(args)}}}`,
      )
      const made = images.map(base64 => `{"type":"image_url","image_url":{"url":${dataUrl(base64)}}}`)
      const message = [
        `"role":"assistant","content":${text}`,
        ...(reasoning ? [`"reasoning_content":${reasoning}`] : []),
        ...(said.length > 0 ? [`"tool_calls":[${said.join()}]`] : []),
        ...(made.length > 0 ? [`"images":[${made.join()}]`] : []),
      ]
      const reason = said.length > 0 ? 'tool_calls' : 'stop'
      return `{"choices":[{"index":0,"message":{${message.join()}},"finish_reason":"${reason}"}],${usage}${extraOf(content)}}`
    },
  },
  'anthropic.messages': {
    base: '/v1',
    answer(content) {
      const { text = '"a"', reasoning, calls = [], native = [] } = content
      const own = native.map(input => `{"type":"server_tool_use","id":"s","name":"web_search","input":${input}}`)
      const thought = reasoning ? [`{"type":"thinking","thinking":${reasoning},"signature":"abcd"}`] : []
      const said = calls.map((args, at) => `{"type":"tool_use","id":"c${at}","name":"f","input":${args}}`)
      const blocks = joined(thought, own, [`{"type":"text","text":${text}}`], said)
      const head =
        '"id":"m","type":"message","role":"assistant","model":"x","usage":{"input_tokens":9,"output_tokens":9}'
      const reason = said.length > 0 ? 'tool_use' : 'end_turn'
      return `{${head},"content":[${blocks}],"stop_reason":"${reason}"${extraOf(content)}}`
    },
  },
  'gemini.generate': {
    base: '/v1beta',
    answer(content) {
      const { text = '"a"', reasoning, calls = [], native = [], images = [] } = content
      const own = native.map(args => `{"toolCall":{"toolType":"GOOGLE_MAPS","args":${args},"id":"s"}}`)
      const thought = reasoning ? [`{"text":${reasoning},"thought":true}`] : []
      const said = calls.map(args => `{"functionCall":{"name":"f","args":${args}}}`)
      const made = images.map(base64 => `{"inlineData":{"mimeType":"image/png","data":"${base64}"}}`)
      const parts = joined(thought, own, [`{"text":${text}}`], said, made)
      const counts = '"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":9,"totalTokenCount":18}'
      return `{"candidates":[{"content":{"role":"model","parts":[${parts}]},"finishReason":"STOP"}],${counts}${extraOf(content)}}`
    },
  },
  'openai.responses': {
    base: '/v1',
    answer(content) {
      const { text = '"a"', reasoning, calls = [], native = [], images = [] } = content
      const own = native.map(
        tools => `{"type":"mcp_list_tools","id":"l","server_label":"s","tools":[{"name":"t","input_schema":${tools}}]}`,
      )
      const thought = reasoning
        ? [`{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":${reasoning}}]}`]
        : []
      const said = calls.map(
        (args, at) =>
          `{"type":"function_call","id":"f${at}","call_id":"c${at}","name":"f","arguments":${quoted(args)}}`,
      )
      const made = images.map(
        base64 => `{"type":"image_generation_call","id":"i","status":"completed","result":"${base64}"}`,
      )
      const message = `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":${text},"annotations":[]}]}`
      const output = joined(thought, own, [message], said, made)
      const head =
        '"id":"r","object":"response","status":"completed","model":"x","usage":{"input_tokens":9,"output_tokens":9,"total_tokens":18}'
      return `{${head},"output":[${output}]${extraOf(content)}}`
    },
  },
  'mistral.chat': { base: '/v1', answer: content => wires['openai.chat']!.answer({ ...content, images: [] }) },
  'cohere.chat': {
    base: '/v2',
    answer(content) {
      const { text = '"a"', calls = [] } = content
      const said = calls.map(
        (args, at) => `{"id":"c${at}","type":"function","function":{"name":"f","arguments":${quoted(args)}}}`,
      )
      const more = said.length > 0 ? `,"tool_calls":[${said.join()}]` : ''
      const message = `{"role":"assistant","content":[{"type":"text","text":${text}}]${more}}`
      return `{"id":"x","message":${message},"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":9,"output_tokens":9}}${extraOf(content)}}`
    },
  },
}

/** What may be in an answer. Names that begin with "beyond" are refused. */
const contents: Record<string, () => Content> = {
  'any small one': () => ({}),
  '31 MB of {}': () => ({ extra: listed('{}', 10_400_000) }),
  '20,000 calls': () => ({ calls: Array.from({ length: 20_000 }, () => '{}') }),
  '1,000 calls with 190 values': () => ({ calls: Array.from({ length: 1000 }, () => names(190)) }),
  '500,000 names that differ': () => ({ extra: names(500_000) }),
  '65,000 names that differ': () => ({ extra: names(65_000) }),
  'a name of 28 MB': () => ({ extra: `{"${times('a', 28e6)}":1}` }),
  '28 MB of long whole numbers': () => ({ extra: listed(times('1', 300), 93_000) }),
  '1 MB of long whole numbers': () => ({ extra: listed(times('1', 17), 58_000) }),
  '28 MB of text': () => ({ text: `"${times('a', 28e6)}"` }),
  '28 MB of text with escapes': () => ({ text: `"${times('\\u2041', 4_600_000)}"` }),
  '4 MB of text': () => ({ text: `"${times('a', 4_000_000)}"` }),
  '4 MB of text with escapes': () => ({ text: `"${times('\\u2041\\n', 500_000)}"` }),
  '4 Mi characters of three bytes': () => ({ text: `"${times('ࠀ', 4_000_000)}"` }),
  '4 Mi characters of two units': () => ({ text: `"${times('😀', 2_000_000)}"` }),
  '4 MB of reasoning': () => ({ reasoning: `"${times('ab ', 1_330_000)}"` }),
  'an image of 28 MB': () => ({ images: [times('QUJD', 7e6)] }),
  '4 images of 7 MB': () => ({ images: Array.from({ length: 4 }, () => times('QUJD', 1_750_000)) }),
  '500 images of 56 kB': () => ({ images: Array.from({ length: 500 }, () => times('QUJD', 14_000)) }),
  'arguments with 195,000 values': () => ({ calls: [`{"a":${listed('0', 195_000)}}`] }),
  'arguments with 32,000 names': () => ({ calls: [names(32_000)] }),
  'arguments with 99,000 names': () => ({ calls: [names(99_000)] }),
  'arguments with 4 MB of text': () => ({ calls: [`{"a":"${times('a', 4_000_000)}"}`] }),
  'a native block of 230,000 objects': () => ({ native: [`{"a":${listed(members(980), 235)}}`] }),
  '9,900 native blocks of 20 objects': () => ({ native: Array.from({ length: 9900 }, () => members(20)) }),
  'a native block of 48,000 values': () => ({ native: [`{"a":${listed(members(200), 120)}}`] }),
  'a native block of 7 MB': () => ({ native: [`{"a":"${times('abcd', 1_750_000)}"}`] }),
  'a million numbers in what is ignored': () => ({ extra: `[${listed('1', 499_000)},${listed('1', 499_000)}]` }),
  '490,000 objects in what is ignored': () => ({ extra: `[${listed(listed('{}', 9800), 50)}]` }),
  '28 MB of short texts': () => ({ extra: listed(`"${times('a', 60)}"`, 440_000) }),
}

/** A client of each wire, asking whole and in a stream. */
const asked: Record<string, (model: string) => { path: string; body: Tree; headers?: Record<string, string> }> = {
  chat: model => ({ path: '/v1/chat/completions', body: { model, messages: [{ role: 'user', content: 'Hi' }] } }),
  messages: model => ({
    path: '/v1/messages',
    body: { model, max_tokens: 99, messages: [{ role: 'user', content: 'Hi' }] },
  }),
  responses: model => ({ path: '/v1/responses', body: { model, input: 'Hi', store: false } }),
  gemini: model => ({
    path: `/v1beta/models/${model}:generateContent`,
    body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
  }),
  'ai-sdk': model => ({
    path: '/v3/ai/language-model',
    body: { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] },
    headers: {
      'ai-gateway-protocol-version': '0.0.1',
      'ai-language-model-specification-version': '3',
      'ai-language-model-id': model,
      'ai-language-model-streaming': 'false',
    },
  }),
  mcp: model => ({
    path: '/mcp',
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'chat', arguments: { model, messages: [{ role: 'user', content: 'Hi' }] } },
    },
    headers: { accept: 'application/json, text/event-stream' },
  }),
}

let answer = Buffer.from('{}')
const provider = createServer((req, res) => {
  req.resume().on('end', () => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
    res.end(answer)
  })
}).listen(0, '127.0.0.1')
await once(provider, 'listening')
t.teardown(() => provider.close().closeAllConnections())
const origin = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
const idOf = (wire: string) => wire.replace('.', '-')
const turns = await watchTurns(t)
const gateway = await startGateway(t, {
  env: turns.env,
  providers: Object.fromEntries(
    Object.entries(wires).map(([wire, { base }]) => [
      idOf(wire),
      {
        base_url: `${origin}${base}`,
        wires: { chat: wire },
        models: [{ ...testMapping, model: idOf(wire), id: 'x-1' }],
      },
    ]),
  ),
  models: Object.keys(wires).map(wire => ({
    ...{ id: idOf(wire), name: wire, family: 'test', input: ['text', 'image'], output: ['text', 'image'] },
    ...{ context_length: 1_000_000, max_output: 64_000, stability: 'stable' },
  })),
})
const client = clients(gateway.url, gateway.key)
t.teardown(() => client.close())

for (const [wire, { answer: write }] of Object.entries(wires)) {
  for (const [says, content] of Object.entries(contents)) {
    const rows = Object.keys(asked).filter(name => ONLY.test(`${says}, ${wire} to ${name}`))
    if (rows.length === 0) continue
    t.test(`MF-02 ${says}, ${wire}`, async t => {
      answer = Buffer.from(write(content()))
      for (const name of rows) {
        const { path, body, headers } = asked[name]!(idOf(wire))
        const waits: number[] = []
        let status = 0
        for (let tries = 0; tries < TRIES; tries++) {
          await turns.longestMs()
          const got = await client.ask(JSON.stringify(body), path, headers)
          status = got.status
          waits.push(await turns.longestMs())
          if (process.env.WAIT_SAYS) t.comment(`${got.status} ${got.text.length} ${got.text.slice(0, 150)}`)
        }
        t.comment(`${wire} to ${name}: ${status}, ${waits.map(Math.round).join(' ')}`)
        const what = `${says}, ${wire} to ${name} (${status})`
        figure(t, { id: 'MF-02', what, value: Math.max(...waits), unit: 'ms', atMost: AT_MOST_MS })
      }
    })
  }
}

t.test('the gateway is as it was', t => checkInvariants(t, gateway))
