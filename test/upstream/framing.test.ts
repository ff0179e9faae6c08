/** Bytes from a provider: how they become frames, and when it may be asked again. */
import fc from 'fast-check'
import t from 'tap'
import type { Frame } from '../../src/core/wire.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { EventStreamFraming } from '../../src/upstream/framing/eventstream.ts'
import { framingFor } from '../../src/upstream/framing/index.ts'
import { JsonFraming } from '../../src/upstream/framing/json.ts'
import { SseFraming } from '../../src/upstream/framing/sse.ts'
import { retryAfterMs } from '../../src/upstream/provider-call.ts'
import { thrown } from '../core/kit.ts'
import { cpuMs, leastOf } from '../helpers/cpu.ts'

/** The same cases on every run. */
fc.configureGlobal({ seed: 20261120 })

/** Frames as `data`, or `name: data`. */
const shown = (frames: Frame[]) => frames.map(({ data, name }) => (name === undefined ? data : `${name}: ${data}`))
function read(chunks: readonly (Buffer | string)[]): string[] {
  const framing = new SseFraming()
  const frames = chunks.flatMap(chunk => framing.push(Buffer.from(chunk as string)))
  return shown([...frames, ...framing.end()])
}
const emoji = Buffer.from('😀')
const events = (count: number, text: string) => Array.from({ length: count }, (_, at) => `${text}${at}`)

t.test('SF-07 an event stream is read as providers write it', async t => {
  const rows: [says: string, chunks: (Buffer | string)[], frames: string[]][] = [
    ['S1 normal', ['data: {"a":1}\n\n'], ['{"a":1}']],
    ['S2 no space after the colon', ['data:{"a":1}\n\ndata:  b\n\n'], ['{"a":1}', ' b']],
    ['S3 CRLF', ['data: a\r\n\r\ndata: b\r\n\r\n'], ['a', 'b']],
    ['S3 CR', ['data: a\r\rdata: b\r\r'], ['a', 'b']],
    ['S3 CRLF in two chunks', ['data: a\r', '\ndata: b\r', '\n\r', '\n'], ['a\nb']],
    ['S4 comments', [': OPENROUTER PROCESSING\n\n:\n\ndata: a\n: keep-alive\n\n'], ['a']],
    ['S5 a ping', ['event: ping\ndata: {"type":"ping"}\n\n'], ['ping: {"type":"ping"}']],
    ['S6 two data lines', ['data: {"a":\ndata: 1}\n\n'], ['{"a":\n1}']],
    ['S7 a name', ['event: message_start\ndata: {}\n\ndata: {}\n\n'], ['message_start: {}', '{}']],
    ['S7 a name below', ['data: {}\nevent: x\n\n'], ['x: {}']],
    ['S8 id and retry', ['id: 5\nretry: 100\nretry: soon\nfoo: bar\ndata: x\n\n'], ['x']],
    ['S9 the end', ['data: [DONE]\n\n'], ['[DONE]']],
    ['S9 the end without a newline', ['data: a\n\ndata:[DONE]'], ['a', '[DONE]']],
    ['S10 no end', ['data: a\n\n'], ['a']],
    ['S11 no blank line at the end', ['data: a\n\ndata: b\n'], ['a', 'b']],
    ['S11 half a CRLF at the end', ['data: a\r'], ['a']],
    [
      'S12 a character in two chunks',
      [Buffer.concat([Buffer.from('data: '), emoji.subarray(0, 2)]), emoji.subarray(2), '\n\n'],
      ['😀'],
    ],
    ['S12 half a character at the end', ['data: a', emoji.subarray(0, 2)], ['a\ufffd']],
    ['S13 half a character, escaped', ['data: "\\ud83d"\n\ndata: "\\ude00"\n\n'], ['"\\ud83d"', '"\\ude00"']],
    ['S14 a byte order mark', ['\ufeffdata: a\n\n'], ['a']],
    ['S14 a byte order mark in pieces', [Buffer.from([0xef]), Buffer.from([0xbb, 0xbf]), 'data: a\n\n'], ['a']],
    ['S14 a byte order mark later', ['data: \ufeffa\n\n'], ['\ufeffa']],
    ['S15 many events in one chunk', [events(50, 'data: e').join('\n\n').concat('\n\n')], events(50, 'e')],
    ['S15 one event in many chunks', [...'data: one event\n\n'], ['one event']],
    ['S17 empty data', ['data: \n\ndata:\n\ndata\n\nevent: x\n\n'], []],
    [
      'S22 separators of other alphabets',
      ['data: "a\u2028b\u2029c\u0085d\vе\f"\n\n'],
      ['"a\u2028b\u2029c\u0085d\vе\f"'],
    ],
    ['nothing', [], []],
  ]
  for (const [says, chunks, frames] of rows) t.strictSame(read(chunks), frames, says)
})

t.test('SF-07 however a stream is cut into chunks, its frames are the same', async t => {
  const recorded = Buffer.from(
    '\ufeff: warmup\r\n\r\ndata:{"choices":[]}\r\n\r\ndata: {"content":"H\\u00e9"}\n\nevent: ping\ndata: {}\n\n' +
      'data: {"delta":\ndata: {"content":"Hé🙂"}}\n\ndata: cr\r\rid: 1\r\nevent: x\r\ndata: \u2028\r\n\r\n: end\n\ndata: [DONE]',
  )
  const frames = [
    '{"choices":[]}',
    '{"content":"H\\u00e9"}',
    'ping: {}',
    '{"delta":\n{"content":"Hé🙂"}}',
    'cr',
    'x: \u2028',
    '[DONE]',
  ]
  t.strictSame(read([recorded]), frames)
  t.strictSame(read([...recorded].map(byte => Buffer.from([byte]))), frames, 'byte by byte')
  const wrong = [...recorded.keys()].filter(
    at => `${read([recorded.subarray(0, at), recorded.subarray(at)])}` !== `${frames}`,
  )
  t.strictSame(wrong, [], 'in two, at every byte')
  const cuts = fc.array(fc.nat(recorded.length), { maxLength: 12 }).map(cuts => cuts.sort((a, b) => a - b))
  const holds = fc.property(cuts, cuts => {
    const chunks = [0, ...cuts].map((from, at) => recorded.subarray(from, cuts[at]))
    return `${read(chunks)}` === `${frames}`
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 500 }))
})

t.test('a chunk of short lines takes time in proportion to its length, wherever it has a carriage return', t => {
  const timed = (lines: number) => {
    const chunk = Buffer.from(`${'\n'.repeat(lines)}${'\u0d0d'.repeat(lines / 4)}\ra`)
    return () => cpuMs(() => void new SseFraming().push(chunk))
  }
  timed(100)()
  const [took = 0] = leastOf([timed(20_000)], ms => ms < 100)
  t.ok(took < 100, `${took} ms of CPU for 20,000 lines`)
  t.end()
})

t.test('lines that are no fields of an event cost little', t => {
  const { stackTraceLimit } = Error
  const chunk = Buffer.from('acme:b\n'.repeat(30_000))
  const [took = 0] = leastOf([() => cpuMs(() => void new SseFraming().push(chunk))], ms => ms < 60)
  t.ok(took < 60, `${took} ms of CPU for 30,000 lines`)
  t.equal(Error.stackTraceLimit, stackTraceLimit)
  t.end()
})

t.test('S16 a long line is read in linear time, up to 32 MiB', async t => {
  const chunk = Buffer.alloc(16 * 1024, 'x')
  const framing = new SseFraming()
  let data: string | undefined
  const took = cpuMs(() => {
    framing.push(Buffer.from('data: '))
    for (let size = 0; size < 5_000_000; size += chunk.length) framing.push(chunk)
    data = framing.push(Buffer.from('\n\n'))[0]?.data as string
  })
  t.equal(data?.length, Math.ceil(5_000_000 / chunk.length) * chunk.length)
  t.ok(took < 1000, `${took} ms of CPU`)

  const mebibyte = Buffer.alloc(1024 * 1024, 'x')
  const lines = Buffer.concat([Buffer.from('data: '), mebibyte.subarray(7), Buffer.from('\n')])
  for (const [says, piece, framing] of [
    ['one line', mebibyte, new SseFraming()],
    ['one event of many lines', lines, new SseFraming()],
    ['one body', mebibyte, new JsonFraming()],
  ] as const) {
    for (let size = 0; size < 31; size++) t.strictSame(framing.push(piece), [], says)
    const error = thrown(() => {
      framing.push(piece)
      framing.push(piece)
    })
    t.ok(error instanceof GatewayError, says)
    t.match(error, { status: 502, code: 'upstream_invalid_response', failover: true, message: /32 MiB/ }, says)
  }
})

t.test('a JSON body is one frame, whatever space stands around it', async t => {
  const body = (...chunks: (Buffer | string)[]) => {
    const framing = new JsonFraming()
    for (const chunk of chunks) t.strictSame(framing.push(Buffer.from(chunk as string)), [])
    return framing.end().map(frame => frame.data)
  }
  t.strictSame(body('{"a":', '1}'), ['{"a":1}'])
  t.strictSame(body('\n\n \r\n', '{"a":1}\n'), ['{"a":1}'], 'S18')
  t.strictSame(body('"', emoji.subarray(0, 1), emoji.subarray(1), '"'), ['"😀"'])
  t.strictSame(body(' \n '), [])
  t.strictSame(body(), [])
})

t.test('the content type chooses the framing, not the question', async t => {
  const rows: [type: string | undefined, streamed: boolean, mode: 'stream' | 'unary' | undefined][] = [
    ['text/event-stream', true, 'stream'],
    ['text/event-stream; charset=utf-8', false, 'stream'],
    ['Text/Event-Stream ;charset=UTF-8', true, 'stream'],
    ['application/json', true, 'unary'],
    ['application/json; charset=utf-8', false, 'unary'],
    ['application/problem+json', true, 'unary'],
    [undefined, true, 'stream'],
    [undefined, false, 'unary'],
    ['', true, 'stream'],
    ['text/plain; charset=utf-8', true, 'stream'],
    ['application/octet-stream', false, 'unary'],
    ['text/html', true, undefined],
    ['text/html; charset=utf-8', false, undefined],
    ['image/png', true, undefined],
    ['application/vnd.amazon.eventstream', true, 'stream'],
    ['application/vnd.amazon.eventstream; charset=utf-8', false, 'stream'],
  ]
  for (const [type, streamed, mode] of rows) {
    const says = `${type} for ${streamed ? 'a stream' : 'a whole answer'}`
    if (mode === undefined) {
      const error = thrown(() => framingFor(type, streamed))
      t.match(error, { status: 502, code: 'upstream_invalid_response', failover: true }, says)
      continue
    }
    const chosen = framingFor(type, streamed)
    t.equal(chosen.mode, mode, says)
    const binary = type?.includes('amazon')
    t.ok(chosen.framing instanceof (binary ? EventStreamFraming : mode === 'stream' ? SseFraming : JsonFraming), says)
  }
})

t.test('E8 a provider says in many ways when it may be asked again', async t => {
  const day = 86_400_000
  const rows: [headers: Record<string, string>, message: string, ms: number | undefined][] = [
    [{ 'retry-after': '12' }, '', 12_000],
    [{ 'retry-after': '1.5' }, '', 1500],
    [{ 'retry-after-ms': '250' }, '', 250],
    [{ 'retry-after-ms': '250', 'retry-after': '1' }, '', 250],
    [{ 'retry-after-ms': 'soon', 'retry-after': '1' }, '', 1000],
    [{}, 'Please retry after 12 seconds.', 12_000],
    [{}, 'Please retry in 34.4s.', 34_400],
    [{}, 'Rate limit reached. Please try again in 20s.', 20_000],
    [{ 'retry-after': '3' }, 'Please retry after 12 seconds.', 3000],
    [{ 'retry-after': '999999999' }, '', day],
    [{ 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' }, '', day],
    [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }, '', undefined],
    [{ 'retry-after': '0' }, '', undefined],
    [{ 'retry-after': '-5' }, '', undefined],
    [{ 'retry-after': 'Infinity' }, '', undefined],
    [{ 'retry-after': '' }, '', undefined],
    [{}, 'Please try again in 9m38.016s. Need more tokens?', 578_016],
    [{}, 'Please try again in 842ms.', 842],
    [{}, 'Try again in 5 minutes or wait for 3 hours.', 300_000],
    [{}, 'Your quota will reset after 5h59m59s.', 21_599_000],
    [{}, 'Try again in 3 months.', undefined],
    [{}, 'Try again in 40h.', day],
    [{}, 'Please retry later.', undefined],
  ]
  for (const [headers, message, ms] of rows) {
    t.equal(
      retryAfterMs(name => headers[name], message),
      ms,
      JSON.stringify([headers, message]),
    )
  }
  const noon = Date.UTC(2026, 0, 2, 12)
  t.intercept(Date, 'now', { value: () => noon })
  t.equal(
    retryAfterMs(() => new Date(noon + 60_000).toUTCString(), ''),
    60_000,
    'a date',
  )
})

t.test('a spent account names the date from which it may be used', async t => {
  const inFiveDays = new Date(Date.now() + 5 * 86_400_000).toISOString()
  const until = (date: string) =>
    retryAfterMs(() => undefined, `You have reached your limits. You will regain access on ${date} at 00:00 UTC.`)
  t.ok(until(inFiveDays.slice(0, 10))! > 3 * 86_400_000)
  t.equal(until('2020-01-01'), undefined, 'a date that has passed')
  t.equal(until('9999-01-01'), 32 * 86_400_000, 'at most a month')
  for (const text of [
    'Your limit will reset at 9999-01-01 23:11:34',
    'quotaResetTimeStamp: available after 9999-01-01T07:45:40Z',
    'Access returns on December 1, 9999.',
    'Your key works again until 9999-01-01',
    '\u60a8\u7684\u9650\u989d\u5c06\u5728 9999-01-01 23:11:34 \u91cd\u7f6e',
  ]) {
    t.equal(
      retryAfterMs(() => undefined, text),
      32 * 86_400_000,
      text,
    )
  }
})
