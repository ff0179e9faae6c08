/** Forms as clients write them (docs/contributing/edge-cases.md#media M8, M9): whole, odd, broken and hostile. */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { readBody } from '../../src/http/body.ts'
import { BodyGuard } from '../../src/http/body-guard.ts'
import type { IncomingRequest } from '../../src/http/incoming-request.ts'
import { type Form, Upload } from '../../src/lib/body.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'

fc.configureGlobal({ seed: 20261120 })

const LIMIT = 4 * 1024 * 1024
const TYPE = 'multipart/form-data; boundary=b'
const text = (name: string, value: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const file = (name: string, content: string, more = '; filename="a.WAV"\r\nContent-Type: audio/wav') =>
  `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`
const END = '--b--\r\n'

/** `memory`: so many bytes, or those of a budget. */
function read(
  chunks: readonly Buffer[],
  contentType = TYPE,
  more: Record<string, string> = {},
  memory: number | MemoryBudget = LIMIT * 4,
) {
  const budget = typeof memory === 'number' ? new MemoryBudget(memory, { memory: () => 0 }) : memory
  const guard = new BodyGuard(budget, () => 'org')
  const req = Object.assign(Readable.from(chunks), { headers: { 'content-type': contentType, ...more } })
  const rules = { body: 'multipart', bodyLimit: LIMIT, codec: {} } as const
  return readBody(req as unknown as IncomingRequest, {} as ServerResponse, rules, guard)
}

/** What a form holds, or how it is refused. */
async function outcome(...args: Parameters<typeof read>): Promise<unknown> {
  try {
    const form = (await read(...args)).value as Form
    const files = [...form.files].map(([name, all]) => [
      name,
      ...all.map(({ pieces, contentType, extension }) => [Buffer.concat(pieces).toString(), contentType, extension]),
    ])
    return { texts: Object.fromEntries(form.texts), files }
  } catch (error) {
    return error instanceof GatewayError ? `${error.status} ${error.code}` : error
  }
}
const of = (body: string, type?: string) => outcome([Buffer.from(body)], type)

t.test('M8 a form is read whatever its order, its boundary and its preamble', async t => {
  const whole = { texts: { model: ['m'] }, files: [['file', ['RIFF', 'audio/wav', 'wav']]] }
  t.strictSame(await of(text('model', 'm') + file('file', 'RIFF') + END), whole)
  t.strictSame(await of(file('file', 'RIFF') + text('model', 'm') + END), whole, 'the file first')
  t.strictSame(await of(`a preamble\r\n${text('model', 'm')}${file('file', 'RIFF')}${END}an epilogue`), whole)
  const quoted = (text('model', 'm') + file('file', 'RIFF') + END).replaceAll('--b', '--a b')
  t.strictSame(await of(quoted, 'multipart/form-data; boundary="a b"'), whole)
  t.strictSame(await of(`${text('a[]', '1')}${text('a[]', '2')}${text('é', 'ü')}${END}`), {
    texts: { 'a[]': ['1', '2'], é: ['ü'] },
    files: [],
  })
  const odd = file('file', '', '; filename="../../etc/passwd"\r\nContent-Type: application/octet-stream')
  t.strictSame(await of(odd + END), { texts: {}, files: [['file', ['', '', '']]] }, 'no bytes, no type, no extension')
  const bare = file('file', 'RIFF', '\r\nContent-Type: application/octet-stream')
  t.strictSame(await of(bare + END), { texts: {}, files: [['file', ['RIFF', '', '']]] }, 'a file without a name')
})

t.test('M8 a form is the same however the bytes come', async t => {
  const body = Buffer.from(text('model', 'm') + file('file', 'a\r\n--\r\n-b\r\n--bc') + text('n', '2') + END)
  const expected = await outcome([body])
  const cuts = fc.uniqueArray(fc.nat(body.length), { maxLength: 20 })
  const holds = fc.asyncProperty(cuts, async cuts => {
    const edges = [0, ...cuts.sort((a, b) => a - b), body.length]
    const chunks = edges.slice(1).map((end, index) => body.subarray(edges[index], end))
    t.strictSame(await outcome(chunks.filter(({ length }) => length > 0)), expected)
  })
  await fc.assert(holds, { numRuns: 50 })
})

t.test('M8, M9 a broken form is refused, and says so', async t => {
  const rows: [says: string, body: string, refused: string, type?: string][] = [
    ['no boundary', text('a', '1') + END, '400 invalid_form_data', 'multipart/form-data'],
    ['another boundary', text('a', '1') + END, '400 invalid_form_data', 'multipart/form-data; boundary=c'],
    ['nothing', '', '400 invalid_form_data'],
    ['a cut field', text('a', '1'), '400 invalid_form_data'],
    ['a cut file', file('a', 'RIFF').slice(0, -4), '400 invalid_form_data'],
    ['a part without a name', '--b\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b--\r\n', '400 invalid_form_data'],
    [
      'a file without one',
      '--b\r\nContent-Disposition: form-data; filename="a"\r\n\r\n1\r\n--b--\r\n',
      '400 invalid_form_data',
    ],
    ['bytes without a file name', file('a', 'RIFF', '\r\nContent-Type: audio/wav') + END, '400 invalid_form_data'],
    [
      'a long head',
      `--b\r\nContent-Disposition: form-data; name="a"; x="${'x'.repeat(20_000)}"\r\n\r\n`,
      '400 invalid_form_data',
    ],
    ['a long name', text('x'.repeat(201), '1') + END, '400 invalid_form_data'],
    ['65 parts', text('a', '1').repeat(65) + END, '400 invalid_form_data'],
    ['17 files', file('a', '1').repeat(17) + END, '400 invalid_form_data'],
    ['a long text', text('a', 'x'.repeat(1024 * 1024 + 1)) + END, '413 request_too_large'],
    ['too much', file('a', 'x'.repeat(LIMIT)) + END, '413 request_too_large'],
    ['JSON', '{}', '415 unsupported_media_type', 'application/json'],
  ]
  for (const [says, body, refused, type] of rows) t.equal(await of(body, type), refused, says)
  const packed = gzipSync(text('model', 'm') + END)
  const unpacked = await outcome([packed], TYPE, { 'content-encoding': 'gzip' })
  t.strictSame(unpacked, { texts: { model: ['m'] }, files: [] })
  t.equal(await outcome([packed], TYPE, { 'content-encoding': 'br' }), '415 unsupported_encoding')
  t.equal(typeof (await of(text('a', '1').repeat(64) + END)), 'object', '64 parts are taken')
  t.equal(typeof (await of(file('a', '1').repeat(16) + END)), 'object', '16 files are taken')
})

t.test('the head of a file is read without the rest of it', async t => {
  const rest = Buffer.alloc(8, 2)
  const unread = new Proxy(rest, {
    get() {
      throw new Error('this piece is not needed')
    },
  })
  const pieces = [Buffer.from('RI'), Buffer.from('FF'), Buffer.from('size')]
  t.equal(String(new Upload([...pieces, rest], '', '').head(6)), 'RIFFsi')
  const upload = Object.assign(new Upload(pieces, '', ''), { pieces: [...pieces, unread] })
  t.equal(String(upload.head(8)), 'RIFFsize')
  t.equal(String(new Upload([Buffer.from('R')], '', '').head(8)), 'R')
  t.equal(new Upload([], '', '').head(8).length, 0)
})

t.test('a file is held once, and until no target is tried again', async t => {
  const chunk = Buffer.alloc(64 * 1024, 1)
  const head = Buffer.from('--b\r\nContent-Disposition: form-data; name="f"; filename="a.wav"\r\n\r\n')
  const chunks = [head, ...Array.from({ length: 32 }, () => chunk), Buffer.from('\r\n--b--\r\n')]
  const { value, release } = await read(chunks, TYPE, {}, 64 * 1024 * 64)
  const [upload] = (value as Form).files.get('f')!
  t.equal(upload!.size, 32 * chunk.length)
  const own = upload!.pieces.filter(piece => piece.buffer === chunk.buffer)
  t.ok(own.length >= 31, 'its pieces are those of the socket')
  t.strictSame(upload!.head(4), Buffer.alloc(4, 1))
  t.throws(() => JSON.stringify(upload), /before it is hashed/)
  upload!.hash()
  t.match(JSON.parse(JSON.stringify(upload)), { size: upload!.size, sha256: /^[\w+/]{43}=$/ }, 'a key holds no bytes')
  release!()
  t.strictSame(upload!.pieces, [])
  t.equal(await outcome(chunks, TYPE, {}, 64 * 1024 * 16), '529 overloaded', 'beyond the memory that there is')
})

t.test('a file in base64 is one text, and takes memory for it and for a body', async t => {
  const content = 'x'.repeat(300_000)
  const budget = new MemoryBudget(LIMIT, { memory: () => 0 })
  const form = (await read([Buffer.from(file('f', content) + END)], TYPE, {}, budget)).value as Form
  const [upload] = form.files.get('f')!
  const before = budget.used
  const url = upload!.base64('data:image/png;base64,')
  t.equal(url, `data:image/png;base64,${Buffer.from(content).toString('base64')}`)
  t.equal(budget.used - before, 2 * 400_000)
  t.equal(upload!.base64('data:image/png;base64,'), url)
  t.equal(upload!.base64(), Buffer.from(content).toString('base64'), 'for another wire')
  t.equal(budget.used - before, 2 * 400_000, 'once')
  const [poor] = ((await read([Buffer.from(file('f', content) + END)], TYPE, {}, 1_000_000)).value as Form).files.get(
    'f',
  )!
  t.throws(() => poor!.base64(), /overloaded/i)
})

t.test('the head of a part is bounded, and a longer one is refused by name', async t => {
  const part = (size: number) => file('f', 'RIFF', `; filename="${'a'.repeat(size)}.wav"`)
  t.match(await of(part(15 * 1024) + END), { files: [['f', ['RIFF']]] })
  const long = read([Buffer.from(part(17 * 1024) + END)])
  await t.rejects(long, {
    status: 400,
    code: 'invalid_form_data',
    message: /head of a part is malformed, or longer than 16 KiB/,
  })
})
