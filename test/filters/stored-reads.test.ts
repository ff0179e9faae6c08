/** Reads of stored responses: what they take of memory counts, until their reader has it. */
import t from 'tap'
import type { Services } from '../../src/core/ports.ts'
import { storedResponses } from '../../src/endpoints/stored-responses.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { exchange } from '../core/kit.ts'
import { principalOf } from '../core/principal.ts'

const MIB = 1024 * 1024
const reads = ['/v1/responses/{id}', '/v1/responses/{id}/input_items']

/** Reads a response with so many characters in its input and in its output, or with this turn. */
function reading(path: string, characters: number, limit: number) {
  const text = 'x'.repeat(characters)
  const turn = JSON.stringify({ input: [{ role: 'user', content: text }], output: [{ type: 'message', text }] })
  return readingTurn(path, turn, limit)
}

async function readingTurn(
  path: string,
  turn: string,
  limit = 16 * MIB,
  store: { onFind(): void } = { onFind() {} },
  left?: GatewayError,
) {
  const memory = new MemoryBudget(limit, { memory: () => 0 })
  const record = { id: 'resp_1', previousId: null, createdAt: 1, turn, answer: '{"id":"resp_1"}' }
  const find = async () => {
    store.onFind()
    return record
  }
  const services = { memory, now: () => 1, responses: { find } } as unknown as Services
  const endpoint = storedResponses.find(one => one.method === 'GET' && one.path === path)!
  if (endpoint.serve === 'upstream') throw new Error('is served here')
  const ex = exchange({ endpoint, principal: principalOf({ responsesMs: 1000 }) })
  if (left) ex.signal.abort(left)
  return { memory, endpoint, ex, reply: await endpoint.serve(ex, services) }
}

t.test('a large response is sent in pieces, and counts against the memory of its organization until then', async t => {
  for (const path of reads) {
    const { memory, endpoint, ex, reply } = await reading(path, MIB, 16 * MIB)
    const encoder = endpoint.codec.encoder(ex)
    const pieces: Buffer[] = []
    for await (const batch of reply.events) {
      t.ok(memory.used >= MIB, 'what its reader does not have yet counts')
      const piece = encoder.write(batch)
      if (!Buffer.isBuffer(piece)) throw new Error('no bytes')
      t.ok(piece.length <= 64 * 1024)
      pieces.push(piece)
    }
    t.equal(encoder.end(), '')
    t.equal(memory.used, 0)
    t.match(JSON.parse(Buffer.concat(pieces).toString()), path.endsWith('s') ? { object: 'list' } : { id: 'resp_1' })
    t.strictSame(reply.headers, ['content-length', String(Buffer.concat(pieces).length)])
  }
})

t.test('a reader that leaves gives back what its response took', async t => {
  const { memory, reply } = await reading(reads[0]!, MIB, 16 * MIB)
  for await (const _ of reply.events) break
  t.equal(memory.used, 0)
})

t.test('a read without memory for it is refused', async t => {
  const { memory, reply } = await reading(reads[0]!, MIB, MIB)
  const error = await reply.events[Symbol.asyncIterator]()
    .next()
    .catch((thrown: unknown) => thrown)
  t.ok(error instanceof GatewayError && error.status === 529)
  t.equal(memory.used, 0)
})

t.test('a small response is one piece', async t => {
  const { endpoint, ex, reply } = await reading(reads[0]!, 100, MIB)
  const encoder = endpoint.codec.encoder(ex)
  for await (const batch of reply.events) t.equal(encoder.write(batch), undefined)
  t.match(JSON.parse(String(encoder.end())), { id: 'resp_1' })
})

const sent = async ({ endpoint, ex, reply }: Awaited<ReturnType<typeof readingTurn>>) => {
  const encoder = endpoint.codec.encoder(ex)
  const pieces: Buffer[] = []
  for await (const batch of reply.events) pieces.push(Buffer.from((encoder.write(batch) as Buffer | undefined) ?? ''))
  return Buffer.concat([...pieces, Buffer.from(encoder.end() as string)]).toString()
}

t.test('what a response says is sent as it is stored, and not parsed', async t => {
  const outputs = ['[{"n":1.0}]', '[]', '[{"text":"]},\\"output\\":[\\\\"}, {"e":1e2}]', '[{"output":[[],{"a":[]}]}]']
  const inputs = ['[]', '[{"content":"\\"],\\"output\\":["}]', '[{"output":[{}],"x":"\\\\"}]']
  for (const output of outputs) {
    for (const input of inputs) {
      const json = await sent(await readingTurn(reads[0]!, `{"values":3,"input":${input},"output":${output}}`))
      t.equal(json, `{"id":"resp_1","output":${output}}`)
    }
  }
})

t.test('a list without memory for its input is refused', async t => {
  const error = await reading(reads[1]!, MIB, MIB).catch((thrown: unknown) => thrown)
  t.ok(error instanceof GatewayError && error.status === 529)
})
