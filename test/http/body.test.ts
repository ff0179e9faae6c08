/** Request bodies: bounded before they are read, before they are parsed, and free of what JSON can hide. */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import zlib from 'node:zlib'
import fc from 'fast-check'
import secureJson from 'secure-json-parse'
import t from 'tap'
import { readBody } from '../../src/http/body.ts'
import { BodyGuard } from '../../src/http/body-guard.ts'
import type { IncomingRequest } from '../../src/http/incoming-request.ts'
import { ShapeScan } from '../../src/http/scan.ts'
import { MAX_VALUES } from '../../src/json/shape.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { MemoryBudget } from '../../src/limits/memory.ts'
import { cpuMs } from '../helpers/cpu.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

const JSON_TYPE = { 'content-type': 'application/json' }
const LIMIT = 64
const MIB = 1024 * 1024
const memory = (bytes = 1024 * 1024 * 1024) => new MemoryBudget(bytes, { memory: () => 0 })
const intake = (budget = memory()) => new BodyGuard(budget, () => 'org')

const readJson = (
  req: IncomingRequest,
  res: ServerResponse,
  bodyLimit: number,
  guard: BodyGuard,
  maxValues = MAX_VALUES,
) => readBody(req, res, { bodyLimit, codec: {}, maxValues }, guard)

/** A body as it comes in; `res` counts how often it told the client to go on. */
function request(chunks: readonly (string | Buffer)[], headers: Record<string, string> = JSON_TYPE) {
  const req = Object.assign(Readable.from(chunks.map(chunk => Buffer.from(chunk as string))), { headers })
  const res = { went: 0, writeContinue: () => res.went++ }
  return { req: req as unknown as IncomingRequest, res: res as unknown as ServerResponse & typeof res }
}
async function outcome({ req, res }: ReturnType<typeof request>, limit = 1_000_000): Promise<unknown> {
  try {
    return (await readJson(req, res, limit, intake())).value
  } catch (error) {
    return error instanceof GatewayError ? `${error.status} ${error.code}` : error
  }
}
const read = (...chunks: (string | Buffer)[]) => outcome(request(chunks))

t.test('MF-07, MF-12, MF-14 a body is JSON in UTF-8, by its type and by its bytes', async t => {
  const types: [type: string | undefined, taken: boolean][] = [
    ['application/json', true],
    ['Application/JSON; charset=utf-8', true],
    ['application/json;charset="UTF-8"', true],
    ['application/json; profile=x', true],
    [undefined, false],
    ['', false],
    ['text/plain', false],
    ['application/jsonp', false],
    ['application/json; charset=utf-16', false],
    ['application/json; charset=latin1', false],
    ['multipart/form-data; boundary=x', false],
  ]
  for (const [type, taken] of types) {
    const got = await outcome(request(['{}'], type === undefined ? {} : { 'content-type': type }))
    t.strictSame(got, taken ? {} : '415 unsupported_media_type', String(type))
  }
  for (const coding of ['br', 'compress', 'x', 'gzip, gzip']) {
    const got = await outcome(request(['{}'], { ...JSON_TYPE, 'content-encoding': coding }))
    t.equal(got, '415 unsupported_encoding', coding)
  }
  t.strictSame(await outcome(request(['{}'], { ...JSON_TYPE, 'content-encoding': 'identity' })), {})

  const bodies: [says: string, body: string | Buffer, got: unknown][] = [
    ['nothing', '', '400 invalid_json'],
    ['cut', '{"model":', '400 invalid_json'],
    ['one brace too many', '{}}', '400 invalid_json'],
    ['not a number', '{"n":NaN}', '400 invalid_json'],
    ['a byte that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), '400 invalid_json'],
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le'), '400 invalid_json'],
    ['half a character', Buffer.from([0x22, 0xf0, 0x9f, 0x22]), '400 invalid_json'],
    ['a byte order mark', '\ufeff{"a":1}', { a: 1 }],
    ['a lone surrogate, escaped', '"\\ud83d"', '\ud83d'],
    ['NUL, escaped', '"\\u0000"', '\0'],
    ['the last of two', '{"a":1,"a":2}', { a: 2 }],
    ['null', 'null', null],
    ['too deep', '['.repeat(129), '400 too_deep'],
    ['too much', `[${'1,'.repeat(50_000)}1]`, '400 too_many_elements'],
  ]
  for (const [says, body, got] of bodies) t.strictSame(await read(body), got, says)
  t.strictSame(await read('{"a":"', Buffer.from([0xc3]), Buffer.from([0xa9]), '"}'), { a: 'é' }, 'a character in two')
})

t.test('a compressed body is unpacked, up to the limit of plain ones', async t => {
  const json = Buffer.from(JSON.stringify({ text: 'é'.repeat(100_000) }))
  const packers: [coding: string, pack: (plain: Buffer) => Buffer][] = [
    ['gzip', zlib.gzipSync],
    ['x-gzip', zlib.gzipSync],
    ['GZIP', zlib.gzipSync],
    ['deflate', zlib.deflateSync],
    ['deflate', zlib.deflateRawSync],
  ]
  if ('zstdCompressSync' in zlib) packers.push(['zstd', zlib.zstdCompressSync as (plain: Buffer) => Buffer])
  for (const [coding, pack] of packers) {
    const headers = { ...JSON_TYPE, 'content-encoding': coding }
    const packed = pack(json)
    const cut = packed.subarray(0, -9)
    const sent = { ...headers, 'content-length': String(packed.length) }
    t.strictSame(await outcome(request([packed], sent)), JSON.parse(String(json)), coding)
    const pieces = [packed.subarray(0, 1), packed.subarray(1, 40), packed.subarray(40)]
    t.strictSame(await outcome(request(pieces, headers)), JSON.parse(String(json)), `${coding} in pieces`)
    t.equal(await outcome(request([packed], headers), json.length - 1), '413 request_too_large', coding)
    t.equal(await outcome(request([cut], headers)), '400 bad_request', `${coding}, cut`)
    t.equal(await outcome(request([json], headers)), '400 bad_request', `${coding}, not packed`)
    t.equal(await outcome(request([], headers)), '400 invalid_json', `${coding}, empty`)
  }
})

t.test('a compressed body takes memory for its plain bytes, and nothing once it is over', async t => {
  const budget = memory(64 * MIB)
  const guard = intake(budget)
  const bomb = zlib.gzipSync(Buffer.alloc(60 * MIB, ' '))
  const { req, res } = request([bomb], { ...JSON_TYPE, 'content-encoding': 'gzip' })
  const refused = await readJson(req, res, 64 * MIB, guard).catch((thrown: unknown) => thrown)
  t.match(refused, { status: 529 })
  guard.release()
  t.equal(budget.used, 0)
})

t.test('MF-14 the bytes of a packed body have the limit too, since they may stand for none', async t => {
  const nothing = Array<Buffer>(1000).fill(zlib.gzipSync(''))
  const endless = request(nothing, { ...JSON_TYPE, 'content-encoding': 'gzip' })
  t.equal(await outcome(endless, 1000), '413 request_too_large')
  t.ok(endless.req.isPaused(), 'the rest is not read')
})

t.test('MF-05 keys that would reach a prototype are dropped, in every spelling', async t => {
  const rows: [body: string, got: unknown][] = [
    ['{"__proto__":{"polluted":1},"a":1}', { a: 1 }],
    ['{"\\u005f_proto__":{"polluted":1},"a":1}', { a: 1 }],
    ['{"a":[{"__proto__":{"polluted":1},"b":1}]}', { a: [{ b: 1 }] }],
    ['{"constructor":{"prototype":{"polluted":1}},"a":1}', { a: 1 }],
    ['{"\\u0063onstructor":{"prototype":{}},"a":1}', { a: 1 }],
    ['{"constructor":"x"}', { constructor: 'x' }],
  ]
  for (const [body, got] of rows) {
    const value = (await read(body)) as object
    t.strictSame(JSON.stringify(value), JSON.stringify(got), body)
    t.equal(Object.getPrototypeOf(value), Object.prototype)
  }
  t.notOk('polluted' in {})
})

t.test('MF-05 no spelling of such a key is overlooked, wherever it stands', async t => {
  const spelled = fc
    .tuple(fc.constantFrom('__proto__', 'constructor', 'content', 'a', '__proto', 'constructors'), fc.array(fc.nat(3)))
    .map(([word, ways]) => {
      const letters = [...word].map((letter, at) => {
        const code = letter.charCodeAt(0).toString(16).padStart(4, '0')
        const way = ways[at]
        return way === 1 ? `\\u${code}` : way === 2 ? `\\u${code.toUpperCase()}` : letter
      })
      return `"${letters.join('')}"`
    })
  const { value } = fc.letrec<{ value: string }>(tie => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom('1', 'null', '"\\"__proto__"', '"\\\\"'),
      spelled,
      fc.array(tie('value')).map(values => `[${values}]`),
      fc.array(fc.tuple(spelled, tie('value'))).map(pairs => `{${pairs.map(pair => pair.join(':'))}}`),
    ),
  }))
  const pad = ' '.repeat(1024 * 1024)
  const holds = fc.asyncProperty(value, async body => {
    const expected = secureJson.parse(body, { protoAction: 'remove', constructorAction: 'remove' })
    return JSON.stringify(await read(body)) === JSON.stringify(expected)
  })
  await t.resolves(fc.assert(holds, { numRuns: 300 }))
  const large = request([pad, '{"\\u005f_proto__":{"polluted":1},"a":1}'])
  t.equal(JSON.stringify(await outcome(large, 2 * pad.length)), '{"a":1}', 'in a large body')
})

t.test('long strings of a body are parsed as they are, and kept as they were written', async t => {
  const long = JSON.stringify('a "quoted" line\n€'.repeat(1000))
  const name = JSON.stringify('a "quoted" line\n€'.repeat(500))
  const spelled = `"${'\\u0061'.repeat(3000)}"`
  const filler = JSON.stringify('x'.repeat(16 * 1024))
  const huge = JSON.stringify('y'.repeat(1024 * 1024))
  const bodies = [
    `{"a":${long},"b":[${spelled}, {"c":${filler}}],"d":1}`,
    ` [${long}, ${long},\n${filler}] `,
    `{${name}: 1, ${JSON.stringify('n'.repeat(5000))} : ${long}, "b":${filler}}`,
    `{"__proto__":${long},"a":${filler}}`,
    `{"a":${long},"a":${filler}}`,
    filler,
    `\ufeff${filler}`,
    `{"a":${huge},"b":[${long},${filler}]}`,
    huge,
  ]
  for (const body of bodies) {
    const expected = secureJson.parse(body.replace('\ufeff', ''), {
      protoAction: 'remove',
      constructorAction: 'remove',
    })
    const { req, res } = request([body])
    const { value, rawStrings } = await readJson(req, res, 2_000_000, intake())
    t.equal(JSON.stringify(value), JSON.stringify(expected), `${body.slice(0, 20)}…`)
    const again = String(rawStrings?.stringify(value) ?? JSON.stringify(value))
    t.equal(JSON.stringify(JSON.parse(again)), JSON.stringify(expected))
    if (body.startsWith('{"a":') && body.includes(spelled)) t.ok(again.includes(spelled), 'in its own spelling')
  }
  for (const [says, broken] of [
    ['cut', `{"a":${long},"b":${filler}`],
    ['a control character in a string', `{"a":"${'z'.repeat(20_000)}\n"}`],
    ['an escape that is none', `{"a":"${'z'.repeat(20_000)}\\x"}`],
    ['two strings in a row', `{"a":${long}${filler}}`],
    ['a backslash outside of a string', `{"a":\\${filler}}`],
    ['no end', `{"a":"${'z'.repeat(20_000)}`],
  ] as const) {
    const { req, res } = request([broken])
    const error = await readJson(req, res, 2_000_000, intake()).catch((error: GatewayError) => error)
    let expected = ''
    try {
      JSON.parse(broken)
    } catch (cause) {
      expected = (cause as Error).message
    }
    t.match(error, { status: 400, code: 'invalid_json' }, says)
    const [at] = /position \d+/.exec(expected) ?? ['']
    t.ok((error as GatewayError).message.includes(at), `${says}: ${(error as GatewayError).message.slice(0, 200)}`)
  }
})

t.test('a string that is read in parts is cut within no character and no escape', async t => {
  const units = ['é', '😀', '\\u2041', '\\ud83d\\ude00', '\\\\', '\\n', '\\\\u2041', '\\\\\\\\u', '\\"', '€\\t']
  for (const unit of units) {
    for (let shift = 0; shift < 6; shift++) {
      const body = Buffer.from(`["${'x'.repeat(4 * MIB - 24 + shift)}${unit.repeat(24)}${'y'.repeat(99)}"]`)
      const { req, res } = request([body])
      const { value, rawStrings } = await readJson(req, res, 16 * MIB, intake())
      const [got] = value as [string]
      const [expected] = JSON.parse(String(body)) as [string]
      t.ok(got === expected, `${unit} after ${shift}`)
      t.ok(body.equals(Buffer.from(rawStrings!.stringify(value))), 'it is written as it came')
    }
  }
  for (const broken of ['\n', '\\x', '\\u12', '\\u12"', '\u0000']) {
    const body = `["${'x'.repeat(4 * MIB - 3)}${broken}${'y'.repeat(99)}"]`
    t.equal(await outcome(request([body]), 16 * MIB), '400 invalid_json', JSON.stringify(broken))
  }
})

t.test('what a parser says of a body does not repeat the body', async t => {
  const secret = 'sk-secret-0123456789'
  for (const body of [
    `{"a":${secret}}`,
    `${secret}`,
    `{"a":"${'x'.repeat(99)}" ${secret} }${'x'.repeat(99)}`,
    `{"${'x'.repeat(99)}":${secret}${'x'.repeat(99)}}`,
    `[1,${secret}`,
  ]) {
    const error = await readJson(request([body]).req, request([]).res, 1000, intake()).catch(
      (error: GatewayError) => error,
    )
    t.match(error, { status: 400, code: 'invalid_json', message: /not valid JSON: .+\.$/ }, body)
    t.notMatch((error as GatewayError).message, /sk|secret|xxx/, body)
  }
})

t.test('a body may be as large as the limit, and no larger', async t => {
  const body = (size: number) => `"${'x'.repeat(size - 2)}"`
  const declared = (size: number) => ({ ...JSON_TYPE, 'content-length': String(size) })
  const TOO_LARGE = '413 request_too_large'
  for (const [size, fits] of [
    [LIMIT - 1, true],
    [LIMIT, true],
    [LIMIT + 1, false],
  ] as const) {
    const expected = fits ? 'x'.repeat(size - 2) : TOO_LARGE
    t.equal(await outcome(request([body(size)], declared(size)), LIMIT), expected, `${size} bytes, declared`)
    t.equal(await outcome(request([...body(size)]), LIMIT), expected, `${size} bytes, chunked`)
  }
  const unread = request([body(LIMIT)], declared(LIMIT + 1))
  t.equal(await outcome(unread, LIMIT), TOO_LARGE)
  t.equal(unread.req.readableFlowing, null, 'a body that is declared too large is not read')
  const endless = request(Array<string>(1000).fill('x'.repeat(LIMIT)))
  t.equal(await outcome(endless, LIMIT), TOO_LARGE)
  t.ok(endless.req.isPaused() && endless.req.listenerCount('data') === 0, 'the rest is not read')
})

t.test('PA-15 a body that comes slower than 4 KiB a second in any ten seconds is not waited for', async t => {
  const rows: [
    says: string,
    seconds: number,
    bytesIn: (second: number) => number,
    cutAfter: number | undefined,
    minRate?: number,
  ][] = [
    ['a trickle at first', 9, () => 100, undefined],
    ['a trickle', 20, () => 100, 10],
    ['just too slow', 20, () => 4 * 1024 - 1, 10],
    ['just fast enough', 60, () => 4 * 1024, undefined],
    ['a fast beginning and then a trickle', 60, second => (second < 10 ? 1024 * 1024 : 1200), 20],
    ['slow where any rate will do', 60, () => 100, undefined, 0],
    ['longer than a body may take', 130, () => 100_000, 121],
  ]
  for (const [says, seconds, bytesIn, cutAfter, minRate = 4 * 1024] of rows) {
    const body = intake()
    const failed: GatewayError[] = []
    let cutAt: number | undefined
    body.begin(0, error => failed.push(error))
    for (let second = 1; second <= seconds && body.reading; second++) {
      body.got(bytesIn(second - 1))
      body.check(second * 1000, 120_000, minRate)
      if (!body.reading) cutAt = second
    }
    t.equal(cutAt, cutAfter, says)
    t.match(failed, cutAfter === undefined ? [] : [{ status: 408 }], says)
    body.check(1e9, 120_000, minRate)
    t.equal(failed.length, 1, 'and it is told once')
  }
})

t.test('a body takes memory as it arrives, of its own tenant, and gives it back', async t => {
  const budget = memory(8 * MIB)
  const drips = ['a', 'a', 'a', 'a'].map(tenant => {
    const body = new BodyGuard(budget, () => tenant)
    body.expect(2 * MIB)
    body.begin(0, () => undefined)
    body.got(1200)
    return body
  })
  t.equal(budget.used, 4 * 1200 * 2, 'what is declared takes nothing')
  const other = new BodyGuard(budget, () => 'b')
  other.expect(MIB)
  other.got(MIB)
  t.throws(() => drips[0]!.got(3 * MIB), /overloaded/, 'beyond the share of a tenant')
  t.throws(() => new BodyGuard(budget, () => 'b').expect(8 * MIB), /overloaded/, 'what cannot fit is not read')
  for (const body of [...drips, other]) body.release()
  t.equal(budget.used, 0)
})

t.test('what a body is parsed to takes memory beside its text, before it is parsed', async t => {
  const many = (count: number, value: string) => `[${Array.from({ length: count }, () => value).join()}]`
  const text = JSON.stringify({ messages: [{ role: 'user', content: 'a'.repeat(2000) }] })
  const rows: [says: string, body: string, each: number, count: number][] = [
    ['text', text, 0, 0],
    ['objects', many(1000, '{}'), 64, 1000],
    ['lists in lists', many(1000, '[[]]'), 128, 1000],
    ['objects with names', many(1000, '{"a":0,"b":0}'), 136, 1000],
    ['numbers', many(1000, '0'), 8, 1000],
  ]
  for (const [says, body, each, count] of rows) {
    const budget = memory()
    const guard = intake(budget)
    const { req, res } = request([body])
    await readJson(req, res, MIB, guard)
    const beside = budget.used - body.length
    t.ok(beside >= Math.max(body.length, each * count), `${says}: ${beside}`)
    t.ok(beside <= Math.max(body.length, (each + 8) * count + 100), `${says}, and no more: ${beside}`)
    guard.release()
    t.equal(budget.used, 0)
  }
  const { req, res } = request([many(10_000, '{}')])
  await t.rejects(readJson(req, res, MIB, intake(memory(600 * 1024))), /overloaded/)
})

t.test('a client that expects 100-continue gets it once its headers are accepted', async t => {
  const waiting = { ...JSON_TYPE, expect: '100-continue' }
  const good = request(['{}'], waiting)
  await outcome(good)
  t.equal(good.res.went, 1)
  const large = request(['{}'], { ...waiting, 'content-length': '65' })
  t.equal(await outcome(large, LIMIT), '413 request_too_large')
  t.equal(large.res.went, 0)
})

t.test('a client that goes away while it sends is a client that goes away', async t => {
  for (const cause of [undefined, new Error('reset')]) {
    const req = Object.assign(new Readable({ read() {} }), { headers: JSON_TYPE })
    const got = outcome({ ...request([]), req: req as unknown as IncomingRequest })
    req.push('{"a"')
    req.destroy(cause)
    t.equal(await got, '499 request_cancelled')
  }
})

const shape = (text: string): string | undefined => {
  try {
    new ShapeScan(Buffer.from(text)).run()
    return undefined
  } catch (error) {
    return (error as GatewayError).code ?? 'none'
  }
}

t.test('MF-02, MF-04 depth and number of values are bounded without parsing', async t => {
  const nested = (depth: number, open = '[', close = ']') => `${open.repeat(depth)}${close.repeat(depth)}`
  const list = (length: number, of = '1') => `[${Array<string>(length).fill(of).join()}]`
  const named = (count: number) => `{${Array.from({ length: count }, (_, at) => `"k${at}":1`).join()}}`
  const rows: [says: string, text: string, code: string | undefined][] = [
    ['128 lists', nested(128), undefined],
    ['129 lists', nested(129), 'too_deep'],
    ['128 objects', nested(128, '{"a":', '}'), undefined],
    ['129 objects', nested(129, '{"a":', '}'), 'too_deep'],
    ['many that are not deep', list(390, nested(100)), undefined],
    ['40,000 values', list(39_999), undefined],
    ['40,001 values', list(40_000), 'too_many_elements'],
    ['75,001 values in objects', list(25_000, '{"a":1,"b":2}'), 'too_many_elements'],
    ['19,000 names that repeat', list(19_000, '{"a":1}'), undefined],
    ['20,000 names that differ', named(20_000), undefined],
    ['20,001 names that differ', named(20_001), 'too_many_elements'],
    ['brackets in a string', JSON.stringify('['.repeat(500)), undefined],
    ['commas in a string', JSON.stringify(','.repeat(300_000)), undefined],
    ['an escaped quote', `"\\"${'['.repeat(500)}"`, undefined],
    ['an escaped backslash', `["\\\\",${nested(128)}]`, 'too_deep'],
    ['three backslashes', `"\\\\\\"${'['.repeat(500)}"`, undefined],
    ['a name of 16,383 bytes', `{"${'a'.repeat(16_383)}" : 1}`, undefined],
    ['a name of 16,384 bytes', `{"${'a'.repeat(16_384)}" : 1}`, 'too_many_elements'],
    ['a text of 16,384 bytes', `{"a":"${'a'.repeat(16_384)}","b":1}`, undefined],
    ['a string that does not end', `"${'['.repeat(500)}`, undefined],
    ['nothing', '', undefined],
  ]
  for (const [says, text, code] of rows) t.equal(shape(text), code, says)
})

t.test('MF-04 an endpoint may take more values than others do, and no more than it says', async t => {
  const body = (values: number) =>
    request([
      `[${Array(values - 1)
        .fill('1')
        .join()}]`,
    ])
  const read = async (values: number, most?: number) => {
    const { req, res } = body(values)
    const got = await readJson(req, res, 1_000_000, intake(), most).catch((error: GatewayError) => error)
    return got instanceof GatewayError ? [got.code, /than (\d+)/.exec(got.message)?.[1]] : undefined
  }
  t.equal(await read(250_000, 250_000), undefined)
  t.strictSame(await read(250_001, 250_000), ['too_many_elements', '250000'])
  t.strictSame(await read(40_001), ['too_many_elements', '40000'])
  t.strictSame(await read(12, 10), ['too_many_elements', '10'])
})

t.test('MF-04 a hostile shape is seen at once', async t => {
  const rows: [says: string, text: string][] = [
    ['a million levels', '['.repeat(1_000_000)],
    ['a million objects', '{"a":'.repeat(1_000_000)],
    ['ten million values', `[${'1,'.repeat(10_000_000)}1]`],
  ]
  for (const [says, text] of rows) t.throws(() => new ShapeScan(Buffer.from(text)).run(), says)
  const escapes = Buffer.from(`"${'\\"'.repeat(500_000)}${'\\\\'.repeat(500_000)}"`)
  const took = cpuMs(() => new ShapeScan(escapes).run())
  t.ok(took < 500, `${took} ms of CPU for a million escapes`)
})

t.test('no JSON within the bounds is refused', async t => {
  const json = fc.oneof(
    fc.json({ maxDepth: 20 }),
    fc
      .string({ unit: fc.constantFrom('"', '\\', '[', '{', ',', 'a') })
      .map(text => JSON.stringify([text, { [text]: text }])),
  )
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(json, text => shape(text) === undefined),
      { numRuns: 1000 },
    ),
  )
})
