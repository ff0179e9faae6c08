/**
 * What the wires `gemini.generate` and `gemini.vertex` send. Their tables are `test/golden/gemini`: requests with what
 * they become, and one `*.table.json` per kind of edge case. Ids: docs/contributing/edge-cases.md.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { fromWireName, toWireName } from '../../plugins/gemini/tool-name.ts'
import { plugin } from '../../plugins/gemini.ts'
import type { Target } from '../../src/core/translator.ts'
import { anyCalls, checkHistories, checkRefusals } from './golden-checks.ts'
import { encodeWith, golden, hi, type Json } from './golden-kit.ts'
import { target } from './wire-kit.ts'

interface Turn {
  role: string
  parts: Json[]
}
/** What a row may say of the offer that it is sent to. */
interface Offer {
  wire?: string
  mapping?: Json
  model?: Json
}

const chats = plugin.wires.filter(wire => wire.op === 'chat')
const wires = new Map(chats.map(wire => [wire.wire, wire]))
const { read: textIn, names, table } = golden('gemini')
const read = (name: string) => JSON.parse(textIn(name))

const offer = ({ mapping = {}, model = {} }: Offer): Target => {
  const { supports, ...rest } = mapping as { supports?: never[] }
  return target({ mapping: { ...rest, supports: new Set(supports) }, model })
}
const encode = (request: Json, to: Target = target(), name = 'gemini.generate') =>
  encodeWith(wires.get(name)!, request, to, request.stream === true)
const contentsOf = (messages: Json[], to?: Target) => encode({ messages }, to).body.contents as Turn[]
const plain = (value: unknown) => JSON.parse(JSON.stringify(value))
const call = (id: string, args = '{}', signature?: string) => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: args },
  ...(signature && { extra_content: { vendor: { thought_signature: signature } } }),
})

type Request = Offer & { name: string; request: Json }
const requests = names('.request.json').map((name): Request => ({ name, ...read(`${name}.request.json`) }))

t.test('both surfaces are wires of the chat operation', async t => {
  t.same(
    chats.map(({ wire, op }) => [wire, op]),
    [
      ['gemini.generate', 'chat'],
      ['gemini.vertex', 'chat'],
    ],
  )
})

t.test('golden requests are encoded without touching them', async t => {
  for (const { name, wire, request, ...row } of requests) {
    t.same(plain(encode(request, offer(row), wire)), read(`${name}.body.json`), name)
  }
})

t.test('the same request always becomes the same bytes', async t => {
  for (const { name, wire, request, ...row } of requests) {
    const all = new Set<string>()
    for (let i = 0; i < 100; i++) all.add(JSON.stringify(encode(structuredClone(request), offer(row), wire)))
    t.equal(all.size, 1, name)
  }
})

t.test('histories become alternating turns', async t => {
  for (const { name, mapping, messages, contents } of table<Offer & { messages: Json[]; contents: Turn[] }>(
    'histories',
  )) {
    t.same(plain(contentsOf(messages, offer({ mapping: mapping ?? {} }))), contents, name)
  }
})

t.test('parameters are mapped or dropped', async t => {
  // In a row, null stands for a field that must be absent.
  for (const { name, wire, request, body, ...row } of table<Offer & { request: Json; body: Json }>('parameters')) {
    const sent = encode(request, offer(row), wire).body
    for (const [field, value] of Object.entries(body)) t.same(sent[field] ?? null, value, `${name}: ${field}`)
  }
})

t.test('what the wire cannot carry is refused by name', async t => {
  checkRefusals(t, { table, encode })
  const deep = `{"a":${'['.repeat(300)}${']'.repeat(300)}}`
  const messages = [{ role: 'assistant', tool_calls: [call('a', deep)] }]
  t.throws(() => encode({ messages }), { status: 400, code: 'too_deep' }, 'arguments that nobody measured')
})

t.test('a model id is one segment of the path, or is refused', async t => {
  const path = (externalId: string, name?: string) => encode({}, target({ mapping: { externalId } }), name).path
  t.equal(path('a/../b?c#d:e'), '/models/a%2F..%2Fb%3Fc%23d%3Ae:generateContent')
  t.equal(path('tuned é', 'gemini.vertex'), '/publishers/google/models/tuned%20%C3%A9:generateContent')
  for (const id of ['', '.', '..', 'a\\b', 'a\nb']) t.throws(() => path(id), RangeError, JSON.stringify(id))
})

t.test('any image type that the first bytes prove is declared as what it is', async t => {
  const heads: [string, string, string][] = [
    ['image/gif', 'GIF89a', 'image'],
    ['image/heic', '\0\0\0\x18ftypheic', 'image'],
    ['image/heif', '\0\0\0\x18ftypmif1', 'image'],
    ['audio/ogg', 'OggS\0', 'audio'],
    ['audio/flac', 'fLaC', 'audio'],
    ['audio/aiff', 'FORM\0\n\0\0AIFF', 'audio'],
    ['audio/aac', '\xff\xf1P', 'audio'],
    ['audio/m4a', '\0\0\0\x18ftypM4A ', 'audio'],
    ['audio/mp3', '\xff\xfb\x90', 'audio'],
  ]
  for (const [mime, head, kind] of heads) {
    const data = Buffer.from(head, 'latin1').toString('base64')
    const url = `data:image/png;base64,${data}`
    const part =
      kind === 'image'
        ? { type: 'image_url', image_url: { url } }
        : { type: 'input_audio', input_audio: { data, format: 'wav' } }
    const [sent] = contentsOf([{ role: 'user', content: [part] }])[0]!.parts
    t.same(sent, { inlineData: { mimeType: mime, data } }, mime)
  }
})

t.test('a longer conversation begins with the bytes of the shorter one', async t => {
  const messages: Json[] = [
    { role: 'system', content: 'Long' },
    { role: 'user', content: 'Go' },
    { role: 'assistant', content: 'I look', tool_calls: [call('a', '{"z":1,"a":2}'), call('b')] },
    { role: 'tool', tool_call_id: 'b', content: '{"z":1,"a":2}' },
    { role: 'tool', tool_call_id: 'a', content: 'ok' },
  ]
  const later = [
    { role: 'assistant', content: 'Done' },
    { role: 'user', content: 'More' },
    { role: 'system', content: 'Now' },
    { role: 'assistant', tool_calls: [call('c')] },
  ]
  const tools = ['z', 'a'].map(name => ({ type: 'function', function: { name } }))
  const to = offer({ mapping: { supports: ['reasoning'], reasoningEfforts: ['low'] } })
  const prefix = (more: Json[], rest: Json = {}) => {
    const text = JSON.stringify(encode({ tools, messages: [...messages, ...more], ...rest }, to).body)
    return text.slice(0, text.indexOf('"ok"'))
  }
  const first = prefix([])
  t.ok(first.includes('functionResponse'))
  for (let i = 0; i < 100; i++) {
    t.equal(prefix(later.slice(0, i % 5), i % 2 ? { temperature: 1, tool_choice: 'auto' } : {}), first)
  }
})

t.test('an earlier turn is encoded alike however the conversation goes on', async t => {
  const said = fc.record({
    role: fc.constantFrom('developer', 'system', 'user', 'assistant'),
    content: fc.oneof(fc.string(), fc.constant(null)),
  })
  const holds = fc.property(fc.array(said, { minLength: 1 }), fc.array(said), (turns, more) => {
    const before = contentsOf([...turns, hi, { role: 'assistant', content: 'x' }, hi])
    const after = contentsOf([...turns, hi, { role: 'assistant', content: 'x' }, hi, ...more])
    const kept = before.slice(0, -1)
    return JSON.stringify(after.slice(0, kept.length)) === JSON.stringify(kept)
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 50 }))
})

t.test('R19 tool names are spelt in the alphabet of the wire and read back', async t => {
  for (const name of ['get_weather-2', 'a.b:c', '_x']) t.equal(toWireName(name), name)
  const pieces = fc.array(
    fc.oneof(fc.constantFrom('_', 'u', '002e', 'a', '_u0', '.', '9'), fc.string({ maxLength: 2 })),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  fc.assert(
    fc.property(pieces, parts => {
      const name = parts.join('')
      const spelt = toWireName(name)
      return name === '' || (/^[a-zA-Z_][a-zA-Z0-9_.:-]*$/.test(spelt) && fromWireName(spelt) === name)
    }),
    { numRuns: 1000, seed: 1 },
  )
  for (const name of ['a_u002e_b', '1_uabcd.', '_u10ffff_', '日本.🙂']) t.equal(fromWireName(toWireName(name)), name)
  t.equal(fromWireName('_uffffff_'), '_uffffff_', 'what is no character stands as it is')
})

/** The first rule of the wire that `contents` break. */
function fault(contents: Turn[]): string | undefined {
  let names: unknown[] = []
  for (const [i, { role, parts }] of contents.entries()) {
    const field = (name: string) => parts.flatMap(part => (part[name] ? [part[name] as Json] : []))
    const results = field('functionResponse')
    if (role !== (i % 2 ? 'model' : 'user')) return 'roles must alternate'
    if (parts.length === 0) return 'turns must say something'
    if (parts.some(part => part.text === '' && part.thoughtSignature === undefined)) return 'text must not be empty'
    if (JSON.stringify(results.map(({ name, id }) => [name, id])) !== JSON.stringify(names)) return 'results must pair'
    if (results.some(({ response }) => typeof response !== 'object' || Array.isArray(response))) return 'objects only'
    names = field('functionCall').map(({ name, id }) => [name, id])
  }
  return contents.at(-1)!.role === 'user' ? undefined : 'the user must be last'
}

t.test('any history is refused by name, or pairs every call with one result', async t => {
  const id = fc.constantFrom('a', 'b', 'a|b', '', 'é')
  const words = fc.constantFrom('', ' ', 'x', '{"a":1}', '\ud83d')
  const parts = fc.array(
    words.map(text => ({ type: 'text', text })),
    { maxLength: 3 },
  )
  const spoken = fc.oneof(words, fc.constant(null), parts)
  const details = fc.constantFrom(
    undefined,
    [{ type: 'reasoning.text', text: '', signature: 'acme:s', format: 'google-gemini-v1' }],
    [{ type: 'reasoning.encrypted', data: 'acme:s', format: 'google-gemini-v1' }],
  )
  const message: fc.Arbitrary<Json> = fc.oneof(
    fc.record({ role: fc.constantFrom('system', 'developer', 'user'), content: spoken }),
    fc.record({
      role: fc.constant('assistant'),
      content: spoken,
      tool_calls: anyCalls(id),
      reasoning_details: details,
    }),
    fc.record({ role: fc.constant('tool'), content: spoken, tool_call_id: id }),
  )
  const histories = fc.array(message, { minLength: 1, maxLength: 8 })
  checkHistories(t, histories, contentsOf, contents => assert.equal(fault(contents), undefined))
})
