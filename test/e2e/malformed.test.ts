/** Requests that are nearly right: what is read of them is one thing for all who read it, and nothing ends in a 500. */

import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { endpoints } from '../../src/endpoints/index.ts'
import type { Json } from '../../src/json/json.ts'
import { groupsOf, openBooks } from '../helpers/books.ts'
import { figure } from '../helpers/figure.ts'
import { isErrorBody } from '../helpers/invariants.ts'
import { raw } from '../helpers/raw.ts'
import { readEvents, textOf } from '../helpers/sse.ts'
import { plainGateway } from './plain.ts'

/** The same cases on every run. */
const SEED = 20261121
const CASES = Number(process.env.MALFORMED_CASES ?? 30)
/** All that a POST route may answer to what nobody means. */
const allowed = [200, 400, 402, 403, 404, 413, 415, 429, 529]

const { upstream, gateway } = await plainGateway()
const books = openBooks(t, gateway)

const group = groupsOf(t, { gateway, upstream, books })
const hits = async () => (await upstream.record()).length
const post = (body: string) => gateway.post('/v1/chat/completions', body)
const messages = [{ role: 'user', content: 'Hi' }]
const question = { model: 'test', messages }

group('MF-06 of a name that stands twice the last counts, for routing, price and log alike', async t => {
  const response = await post('{"model":"dear","model":"cheap","messages":[{"role":"user","content":"Four"}]}')
  t.equal(response.status, 200)
  const { model, usage, metadata } = (await response.json()) as {
    model: string
    usage: Json
    metadata: { log_id: string }
  }
  const [entry] = await upstream.record('a')
  t.strictSame([model, entry!.model, usage.cost], ['cheap', 'cheap-1', 1e-6])
  const row = books.prepare('SELECT model, requested_model AS requested, cost FROM requests WHERE id = ?')
  t.match(row.get(metadata.log_id), { model: 'cheap', requested: 'cheap', cost: 1000 })
})

group('MF-07 text that is no proper text goes through as it is, and bytes that are no text do not', async t => {
  for (const text of ['\ud83d', 'a\ude00b', '\0', '\u2028\u2029', '\ufeff', '\u001b[31m']) {
    for (const stream of [false, true]) {
      const response = await gateway.chat({ model: 'test', stream, messages: [{ role: 'user', content: text }] })
      t.equal(response.status, 200)
      const told = stream
        ? textOf((await readEvents(response)).data)
        : ((await response.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content
      t.ok(told === `echo: ${text}`, Buffer.from(text, 'utf16le').toString('hex'))
    }
  }
  const marked = await post(`\ufeff${JSON.stringify(question)}`)
  t.equal(marked.status, 200, 'a byte order mark')
  const known = await hits()
  const body = JSON.stringify(question)
  for (const bytes of [Buffer.from(body.replace('Hi', '\xff'), 'latin1'), Buffer.from(body, 'utf16le')]) {
    const lines = ['POST /v1/chat/completions HTTP/1.1', 'Host: g', `Authorization: Bearer ${gateway.key}`]
    const head = [...lines, 'Content-Type: application/json', `Content-Length: ${bytes.length}`, '', ''].join('\r\n')
    const result = await raw(gateway.port, [head, bytes], { responses: 1 })
    t.equal(result.status, 400)
    t.match(JSON.parse(result.body), { error: { code: 'invalid_json' } })
  }
  t.equal(await hits(), known)
  for (const line of gateway.stderr().split('\n').filter(Boolean)) t.doesNotThrow(() => JSON.parse(line), 'INV-6')
})

group('MF-05 keys that would reach a prototype reach nobody, wherever they stand', async t => {
  const evil = '"__proto__":{"polluted":1},"\\u005f_proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}'
  const tool = `{"type":"function","function":{"name":"f","parameters":{"type":"object",${evil}}}}`
  const rows = [
    `{${evil},"model":"test","messages":[{"role":"user","content":"Hi"}]}`,
    `{"model":"test","metadata":{${evil}},"messages":[{"role":"user","content":"Hi",${evil}}]}`,
    `{"model":"test","tools":[${tool}],"messages":[{"role":"user","content":"Hi"}]}`,
    `{"model":"test","image_config":{${evil}},"messages":[{"role":"user","content":"Hi"}]}`,
  ]
  for (const body of rows) {
    const response = await post(body)
    t.ok([200, 400].includes(response.status), `${response.status}: ${body.slice(0, 60)}`)
    await response.text()
  }
  const clean = await gateway.chat(question)
  t.equal(clean.status, 200)
  for (const { body } of await upstream.record('a')) t.notMatch(JSON.stringify(body), 'polluted')
})

group('MF-11 unknown parameters change nothing, and reach no provider', async t => {
  const strange = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`x_${n}`, { n }]))
  const known = { stop: ['x'], seed: 1, logprobs: true, top_logprobs: 3, logit_bias: { 1: 2 } }
  const response = await gateway.chat({ ...question, ...known, ...strange })
  t.equal(response.status, 200)
  t.equal((await gateway.chat(question)).status, 200)
  const [first, second] = (await upstream.record('a')).map(({ body }) => body)
  t.strictSame(first, second)
})

group('MF-12, MF-14 a body that is not plain JSON is refused before it is read', async t => {
  const body = JSON.stringify(question)
  const rows: [says: string, headers: string[], bytes: string | Buffer][] = [
    ['text', ['Content-Type: text/plain'], body],
    ['no type', [], body],
    ['another charset', ['Content-Type: application/json; charset=utf-16'], body],
    ['a form', ['Content-Type: multipart/form-data; boundary=x'], body],
  ]
  for (const coding of ['br', 'gzip, gzip', 'x']) {
    rows.push([coding, ['Content-Type: application/json', `Content-Encoding: ${coding}`], body])
  }
  const bomb = gzipSync(Buffer.alloc(50 * 2 ** 20))
  rows.push(['a bomb', ['Content-Type: application/json', 'Content-Encoding: gzip'], bomb])
  const before = await gateway.rss()
  for (const [says, headers, bytes] of rows) {
    const lines = ['POST /v1/chat/completions HTTP/1.1', 'Host: g', `Authorization: Bearer ${gateway.key}`, ...headers]
    const head = [...lines, `Content-Length: ${bytes.length}`, '', ''].join('\r\n')
    const result = await raw(gateway.port, [head, bytes], { responses: 1 })
    const { error } = JSON.parse(result.body) as { error: Json }
    if (says === 'a bomb') {
      t.strictSame([result.status, error.code], [413, 'request_too_large'])
      continue
    }
    t.equal(result.status, 415, says)
    if (headers.length === 2) t.match(result.headers['accept-encoding'], 'gzip, deflate')
    t.equal(error.code, headers.length === 2 ? 'unsupported_encoding' : 'unsupported_media_type')
  }
  t.ok((await gateway.rss()) - before < 64 * 2 ** 20)
  t.equal(await hits(), 0)
})

group('MF-18 data URLs are those of images, whatever they say', async t => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const rows: [url: string, status: number][] = [
    [`data:image/png;base64,${png}`, 200],
    ['data:text/html;base64,PGgxPg==', 400],
    ['data:image/svg+xml;base64,PHN2Zz4=', 400],
    ['data:image/svg+xml,<svg onload="x()"/>', 400],
    ['data:application/pdf;base64,JVBERi0=', 400],
    ['data:', 400],
    ['data:image/png', 400],
    ['data:image/png,%89PNG', 400],
    ['data:image/png;base64,!!!', 400],
  ]
  for (const [url, status] of rows) {
    const content = [{ type: 'image_url', image_url: { url } }]
    const response = await gateway.chat({ model: 'test', messages: [{ role: 'user', content }] })
    t.equal(response.status, status, url.slice(0, 40))
    const answer: unknown = await response.json()
    if (status !== 200) t.ok(isErrorBody(answer))
  }
  const huge = JSON.stringify({ ...question, x: `data:image/png;base64,${'A'.repeat(40_000_000)}` })
  t.equal((await post(huge).catch(() => ({ status: 413 }))).status, 413)
})

const legal: Json[] = [
  { ...question, stream: true, n: 1 },
  { ...question, tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }] },
  { model: 'test', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }], max_tokens: 5 },
  { model: 'test', max_tokens: 5, system: 'Be.', messages, stop_sequences: ['x'] },
  { model: 'test', input: ['Hi', 'there'], dimensions: 8 },
  { model: 'test', prompt: ['Hi', 'there'], echo: true },
  {
    contents: [{ role: 'user', parts: [{ text: 'Hi' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] }],
    generationConfig: { thinkingConfig: { thinkingBudget: 5 }, responseSchema: { type: 'OBJECT' } },
    tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT', properties: {} } }] }],
    toolConfig: { functionCallingConfig: { mode: 'ANY' } },
  },
]
const names = [...new Set(legal.flatMap(Object.keys))]
/** Anything at all, or a legal request of which some fields are anything at all. */
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc
    .record({
      base: fc.constantFrom(...legal),
      fields: fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 3 })),
    })
    .map(({ base, fields }) => ({ ...base, ...fields })),
)

group(`MF-16 ${CASES} bodies that may be anything get no 500 from any route`, async t => {
  t.comment(`seed ${SEED}`)
  const routes = endpoints.filter(({ method }) => method === 'POST').map(({ path }) => path.replace(/\{.*?\}/, 'test'))
  const isError = (path: string, answer: string) => {
    if (path === '/oauth/authorize') return answer.includes('role="alert"')
    if (path.startsWith('/oauth/')) return typeof JSON.parse(answer).error_description === 'string'
    return path === '/mcp' ? JSON.parse(answer).jsonrpc === '2.0' : isErrorBody(JSON.parse(answer))
  }
  t.ok(routes.length >= 3)
  const bodies = fc.sample(anything, { seed: SEED, numRuns: CASES })
  const wrong: unknown[] = []
  await Promise.all(
    routes.map(async path => {
      for (const body of bodies) {
        const response = await gateway.post(path, JSON.stringify(body))
        const answer = await response.text()
        const good = allowed.includes(response.status) && (response.status === 200 || isError(path, answer))
        if (!good) wrong.push({ path, body, status: response.status, answer })
      }
    }),
  )
  t.strictSame(wrong.slice(0, 5), [])
  figure(t, { id: 'MF-16', what: 'bodies that may be anything', value: CASES * routes.length, unit: '' })
})
