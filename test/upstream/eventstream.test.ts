/** The binary event stream: its messages, however they are cut, and what is no such stream. */
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import type { Frame } from '../../src/core/wire.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { EventStreamFraming } from '../../src/upstream/framing/eventstream.ts'
import { thrown } from '../core/kit.ts'
import { cpuMs } from '../helpers/cpu.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

/** docs/contributing/wire-sources.md#bedrock. */
const VERIFIED = Buffer.from(
  '0000007f000000529bc598af0d3a6d6573736167652d747970650700056576656e740b3a6576656e742d7479706507000c6d6573736167' +
    '6553746172740d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b22726f6c65223a22617373697374616' +
    'e74222c2270223a226162227d4908a72f',
  'hex',
)

const u16 = (value: number) => Buffer.from([value >> 8, value & 255])
const u32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
/** A header's name, type, and value as it stands in the bytes. */
const header = (name: string, type: number, value: Buffer) =>
  Buffer.concat([Buffer.from([Buffer.byteLength(name)]), Buffer.from(name), Buffer.from([type]), value])
const string = (name: string, value: string) =>
  header(name, 7, Buffer.concat([u16(Buffer.byteLength(value)), Buffer.from(value)]))

function sealed(total: number, headers: Buffer, payload: Buffer, headersLength = headers.length): Buffer {
  const lengths = Buffer.concat([u32(total), u32(headersLength)])
  const body = Buffer.concat([lengths, u32(crc32(lengths)), headers, payload])
  return Buffer.concat([body, u32(crc32(body))])
}
function message(headers: Buffer | Readonly<Record<string, string>>, payload: Buffer | string = ''): Buffer {
  const bytes = Buffer.isBuffer(headers)
    ? headers
    : Buffer.concat(Object.entries(headers).map(([name, value]) => string(name, value)))
  const body = Buffer.from(payload as string)
  return sealed(bytes.length + body.length + 16, bytes, body)
}
const event = (type: string, payload: string) =>
  message({ ':message-type': 'event', ':event-type': type, ':content-type': 'application/json' }, payload)

function read(chunks: readonly Buffer[]): Frame[] {
  const framing = new EventStreamFraming()
  const frames = chunks.flatMap(chunk => framing.push(chunk))
  return [...frames, ...framing.end()]
}

t.test('a message is a frame with its type as name', t => {
  const start = { name: 'messageStart', data: '{"role":"assistant","p":"ab"}' }
  t.equal(VERIFIED.length, 127)
  t.strictSame(read([VERIFIED]), [start])
  t.strictSame(event(start.name, start.data), VERIFIED, 'the messages of this test are built as real ones are')
  const others = Buffer.concat([
    header('true', 0, Buffer.alloc(0)),
    header('false', 1, Buffer.alloc(0)),
    header('byte', 2, Buffer.alloc(1)),
    header('short', 3, u16(7)),
    header('int', 4, u32(7)),
    header('long', 5, Buffer.alloc(8)),
    header('bytes', 6, Buffer.concat([u16(3), Buffer.from('abc')])),
    header('time', 8, Buffer.alloc(8)),
    header('uuid', 9, Buffer.alloc(16)),
    string(':event-type', 'x'),
    string('naïve', 'é'),
  ])
  const rows: [says: string, bytes: Buffer, frame: Frame][] = [
    ['headers of every type', message(others, '{"a":"é"}'), { name: 'x', data: '{"a":"é"}' }],
    [
      'an exception',
      message({ ':message-type': 'exception', ':exception-type': 'throttlingException' }, '{"message":"slow"}'),
      { name: 'throttlingException', data: '{"message":"slow"}' },
    ],
    [
      'an error',
      message({ ':message-type': 'error', ':error-code': 'Internal', ':error-message': 'say "no"' }),
      { name: 'error', data: '{"code":"Internal","message":"say \\"no\\""}' },
    ],
    [
      'an error that says nothing',
      message({ ':message-type': 'error' }),
      { name: 'error', data: '{"code":"","message":""}' },
    ],
    ['an event without payload', event('ping', ''), { name: 'ping', data: '' }],
    ['no headers', message({}, '{}'), { name: undefined, data: '{}' }],
    ['names as of an object', message({ __proto__x: 'y', constructor: 'z' }, '{}'), { name: undefined, data: '{}' }],
  ]
  for (const [says, bytes, frame] of rows) t.strictSame(read([bytes]), [frame], says)
  t.strictSame(read([]), [])
  t.strictSame(read([Buffer.alloc(0)]), [])
  t.end()
})

const recorded = Buffer.concat([
  VERIFIED,
  event('contentBlockDelta', '{"delta":{"text":"Hé🙂"}}'),
  event('ping', ''),
  message({ ':message-type': 'exception', ':exception-type': 'x' }, '{}'),
])
const frames = [
  { name: 'messageStart', data: '{"role":"assistant","p":"ab"}' },
  { name: 'contentBlockDelta', data: '{"delta":{"text":"Hé🙂"}}' },
  { name: 'ping', data: '' },
  { name: 'x', data: '{}' },
]

t.test('however a stream is cut into chunks, its frames are the same', t => {
  const same = (chunks: readonly Buffer[]) => JSON.stringify(read(chunks)) === JSON.stringify(frames)
  t.strictSame(read([recorded]), frames)
  t.ok(same([...recorded].map(byte => Buffer.from([byte]))), 'byte by byte')
  const wrong = [...recorded.keys()].filter(at => !same([recorded.subarray(0, at), recorded.subarray(at)]))
  t.strictSame(wrong, [], 'in two, at every byte')
  const cuts = fc.array(fc.nat(recorded.length), { maxLength: 12 }).map(cuts => cuts.sort((a, b) => a - b))
  const holds = fc.property(cuts, cuts => same([0, ...cuts].map((from, at) => recorded.subarray(from, cuts[at]))))
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 500 }))
  t.end()
})

t.test('S10 a stream that ends within a message is cut short', t => {
  const ends = [0, 127]
  for (let end = 0; end <= 200; end++) {
    const framing = new EventStreamFraming()
    const got = framing.push(recorded.subarray(0, end))
    t.strictSame(got, frames.slice(0, end < 127 ? 0 : 1))
    if (ends.includes(end)) t.strictSame(framing.end(), [])
    else
      t.match(
        thrown(() => framing.end()),
        { code: 'upstream_stream_truncated', failover: true },
        `${end} bytes`,
      )
  }
  t.end()
})

t.test('a byte that is wrong is found', t => {
  const missed = [...VERIFIED.keys()].filter(at => {
    const bytes = Buffer.from(VERIFIED)
    bytes[at]! ^= 1
    const error = thrown(() => read([bytes]))
    return !(error instanceof GatewayError && error.code === 'upstream_invalid_response' && error.failover)
  })
  t.strictSame(missed, [])
  t.end()
})

t.test('messages before a broken one are given, whatever chunk they came in', t => {
  const bad = Buffer.from(VERIFIED)
  bad[126]! ^= 1
  for (const next of ['push', 'end'] as const) {
    const framing = new EventStreamFraming()
    t.strictSame(framing.push(Buffer.concat([recorded, bad, VERIFIED])), frames)
    const error = thrown(() => (next === 'push' ? framing.push(VERIFIED) : framing.end()))
    t.match(error, { code: 'upstream_invalid_response', message: /wrong checksum/ }, next)
  }
  t.end()
})

t.test('what is no message is refused', t => {
  const none = Buffer.alloc(0)
  const text = string(':event-type', 'x')
  const rows: [says: RegExp, bytes: Buffer][] = [
    [/wrong checksum/, Buffer.from('data: {"a":1}\n\n')],
    [/shorter than its headers/, sealed(15, none, none)],
    [/shorter than its headers/, sealed(0, none, none)],
    [/shorter than its headers/, sealed(16 + text.length, text, none, text.length + 1)],
    [/more than 128 KiB of headers/, message(Buffer.concat(Array.from({ length: 20_000 }, () => string('abc', ''))))],
    [/larger than 32 MiB/, sealed(32 * 1024 * 1024 + 1, none, none)],
    [/unknown type 10/, message(header('x', 10, none))],
    [/cut off/, message(header('x', 5, Buffer.alloc(7)))],
    [/cut off/, message(header('x', 7, u16(1)))],
    [/cut off/, message(header('x', 7, Buffer.alloc(1)))],
    [/cut off/, message(Buffer.from([5, 97]))],
    [/cut off/, message(Buffer.from([1, 97]))],
  ]
  for (const [says, bytes] of rows) {
    const error = thrown(() => new EventStreamFraming().push(bytes))
    t.match(error, { status: 502, code: 'upstream_invalid_response', failover: true, message: says }, String(says))
  }
  t.end()
})

t.test('S16 a large message is read in linear time, up to 32 MiB', t => {
  const payload = 32 * 1024 * 1024 - 16
  const bytes = message({}, Buffer.alloc(payload, 'x'))
  const framing = new EventStreamFraming()
  let got: Frame[] = []
  const took = cpuMs(() => {
    for (let at = 0; at < bytes.length; at += 16 * 1024) got = framing.push(bytes.subarray(at, at + 16 * 1024))
  })
  t.equal(got[0]?.data.length, payload)
  t.ok(took < 2000, `${took} ms of CPU`)
  t.end()
})
