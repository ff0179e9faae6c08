/** Content codings that nobody asked for: undone as the bytes come, so that a stream stays one (edge case S21). */
import { constants, createDeflate, createGzip, Gunzip, gzipSync } from 'node:zlib'
import t from 'tap'
import { decoded, type Source } from '../../src/upstream/encoding.ts'
import { chunksOf, plainAnswer } from '../../src/upstream/job-caller.ts'

const events = ['data: {"a":"Hé"}\n\n', ': keep-alive\n\n', 'data: {"a":"🙂"}\n\n', 'data: [DONE]\n\n']

/** Each event packed and flushed, as a provider does that compresses a stream. */
async function packed(coding: 'gzip' | 'deflate'): Promise<Buffer[]> {
  const flush = { flush: constants.Z_SYNC_FLUSH }
  const stream = {
    gzip: () => createGzip(flush),
    deflate: () => createDeflate(flush),
  }[coding]()
  const pieces: Buffer[] = []
  let out: Buffer[] = []
  stream.on('data', (chunk: Buffer) => out.push(chunk))
  for (const event of events) {
    await new Promise(resolve => stream.write(event, resolve))
    pieces.push(Buffer.concat(out))
    out = []
  }
  await new Promise(resolve => stream.end(resolve))
  pieces.push(Buffer.concat(out))
  return pieces
}

/** Gives each list of chunks at one call. */
function source(...takes: Buffer[][]): Source {
  return { take: async () => takes.shift() }
}

async function rest(from: Source): Promise<string> {
  const all: Buffer[] = []
  for (let chunks = await from.take(); chunks; chunks = await from.take()) all.push(...chunks)
  return Buffer.concat(all).toString()
}

for (const coding of ['gzip', 'deflate'] as const) {
  t.test(`S21 ${coding}: every event comes out as soon as its bytes are in`, async t => {
    const pieces = await packed(coding)
    const plain = decoded(source(...pieces.map(piece => [piece])), coding)
    for (const event of events) t.equal(Buffer.concat((await plain.take())!).toString(), event)
    t.equal(await plain.take(), undefined)
  })

  t.test(`S21 ${coding}: the same byte by byte, and all at once`, async t => {
    const bytes = Buffer.concat(await packed(coding))
    const each = decoded(source(...[...bytes].map(byte => [Buffer.of(byte)])), coding)
    t.equal(await rest(each), events.join(''))
    t.equal(await rest(decoded(source([bytes]), coding)), events.join(''))
  })
}

t.test('S21 the name of a coding has no case', async t => {
  t.equal(await rest(decoded(source([gzipSync('a')]), 'GZip')), 'a')
  const from = source([Buffer.from('a')])
  t.equal(decoded(from, 'Identity'), from)
  t.equal(decoded(from, 'aws-chunked'), from, 'object stores name the coding of an upload')
})

t.test('S21 what is not packed passes as it is', async t => {
  const from = source([Buffer.from('a')])
  t.equal(decoded(from, undefined), from)
  t.equal(decoded(from, 'identity'), from)
  t.equal(decoded(from, ''), from)
})

t.test('S21 a coding that is not known, or that the bytes are not in, is an invalid answer', async t => {
  for (const coding of ['br', 'BR', 'zstd', 'gzip, br', 'constructor']) {
    t.throws(() => decoded(source(), coding), { code: 'upstream_invalid_response', failover: true }, coding)
  }
  await t.rejects(rest(decoded(source([Buffer.from('<html>')]), 'gzip')), { code: 'upstream_invalid_response' })
})

t.test('S21 an answer that unpacks to more than any answer is given up', async t => {
  const bomb = gzipSync(Buffer.alloc(80 * 1024 * 1024))
  t.ok(bomb.length < 100_000)
  await t.rejects(rest(decoded(source([bomb]), 'gzip')), { code: 'upstream_invalid_response' })
})

t.test('S21 an answer unpacks no further than it is taken, however small it came', async t => {
  const zeros = Buffer.alloc(32 * 1024 * 1024)
  const plain = decoded(source([gzipSync(zeros)]), 'gzip')
  let largest = 0
  let size = 0
  for (let chunks = await plain.take(); chunks; chunks = await plain.take()) {
    const taken = chunks.reduce((sum, { length }) => sum + length, 0)
    largest = Math.max(largest, taken)
    size += taken
  }
  t.equal(size, zeros.length)
  t.ok(largest <= 64 * 1024, `${largest} bytes at once`)
})

t.test('S21 what unpacks an answer is freed with it, and not when the collector comes', async t => {
  const [begin] = await packed('gzip')
  const never = new Promise<undefined>(() => undefined)
  const cases: Readonly<Record<string, (more: () => Promise<Buffer[] | undefined>) => Promise<unknown>>> = {
    'its reader leaves': async more => {
      for await (const chunk of chunksOf(decoded({ take: more }, 'gzip'))) return chunk
      return undefined
    },
    'it is destroyed': async more => {
      const chunks = chunksOf({ take: more })
      const header = (name: string) => (name === 'content-encoding' ? 'gzip' : undefined)
      const plain = plainAnswer({ status: 200, header, chunks, destroy: () => undefined })
      await plain.chunks[Symbol.asyncIterator]().next()
      plain.destroy()
    },
    'its socket breaks': async more => {
      const plain = decoded({ take: async () => (await more()) ?? Promise.reject(new Error('reset')) }, 'gzip')
      await t.rejects(rest(plain), { message: 'reset' })
    },
    'it ends before its packed bytes do': async more => rest(decoded({ take: more }, 'gzip')),
  }
  for (const [name, read] of Object.entries(cases)) {
    const takes = [[begin!]]
    const end = name.includes('destroyed') || name.includes('leaves') ? never : Promise.resolve(undefined)
    const calls = t.capture(Gunzip.prototype, 'destroy', Gunzip.prototype.destroy)
    await read(async () => takes.shift() ?? end)
    t.equal(calls().length, 1, name)
  }
})

t.test('what an answer about a job gives at a time is one piece', async t => {
  const takes = [[Buffer.from('a')], [Buffer.from('b'), Buffer.from('c'), Buffer.from('d')]]
  const pieces: string[] = []
  for await (const piece of chunksOf({ take: async () => takes.shift() })) pieces.push(piece.toString())
  t.strictSame(pieces, ['a', 'bcd'])
})

t.test('S21 an answer about a job is plain, and no header counts its packed bytes', async t => {
  const packed = gzipSync('{"state":"done"}')
  const ended: number[] = []
  const answer = (status: number, headers: Readonly<Record<string, string>>) => ({
    status,
    header: (name: string) => headers[name],
    chunks: chunksOf(source([packed])),
    destroy: () => void ended.push(status),
  })
  const coded = { 'content-encoding': 'gzip', 'content-length': String(packed.length), 'content-type': 'text/json' }
  const plain = plainAnswer(answer(200, coded))
  t.same(['content-type', 'content-length', 'content-encoding'].map(plain.header), ['text/json', undefined, undefined])
  const text: Buffer[] = []
  for await (const chunk of plain.chunks) text.push(chunk)
  t.equal(Buffer.concat(text).toString(), '{"state":"done"}')
  plain.destroy()
  const same = answer(200, { 'content-length': '9' })
  t.equal(plainAnswer(same), same, 'one without a coding')
  const refused = { code: 'upstream_invalid_response' }
  t.throws(() => plainAnswer(answer(206, coded)), refused, 'a part')
  t.throws(() => plainAnswer(answer(203, { 'content-encoding': 'zstd' })), refused, 'an unknown coding')
  t.same(ended, [200, 206, 203])
})
