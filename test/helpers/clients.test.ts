/** The clients of the test harness, and its checks of errors and metrics. */
import { createServer } from 'node:net'
import t from 'tap'
import { isErrorBody, metric } from './invariants.ts'
import { parseResponses, raw } from './raw.ts'
import { readEvents } from './sse.ts'
import { CLOSED_PORT, type Step, startUpstream } from './upstream.ts'

t.test('the raw client sends pieces as given and reports answers and the way the peer closed', async t => {
  let heard = ''
  const server = createServer(socket => {
    socket.on('data', chunk => {
      heard += chunk
      if (heard.endsWith('reset')) socket.resetAndDestroy()
      else if (heard.endsWith('end'))
        socket.end(
          'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nHTTP/1.1 204 No\r\n\r\n',
        )
      else if (heard.endsWith('keep')) socket.write('HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\ncontent-length: 2\r\n\r\nok')
    })
    socket.on('error', () => socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }

  const ended = await raw(port, ['e', { pauseMs: 10 }, Buffer.from('nd')])
  t.match(ended, { statusLine: 'HTTP/1.1 200 OK', body: 'hi', closed: 'fin' })
  t.same(
    ended.responses.map(response => [response.status, response.body, response.complete]),
    [
      [100, '', true],
      [200, 'hi', true],
      [204, '', true],
    ],
  )
  t.equal(heard, 'end')
  t.match(await raw(port, 'reset'), { status: 0, closed: 'reset' })
  t.match(await raw(port, 'silence', { timeoutMs: 30 }), { closed: null })
  // Stops at the answer: the time limit is longer than the test's own.
  const kept = await raw(port, socket => socket.write('keep'), { responses: 1, timeoutMs: 3_600_000 })
  t.match(kept, { status: 200, headers: { a: '1, 2' }, body: 'ok', complete: true, closed: null })
  t.match(await raw(port, 'silence', { until: Promise.resolve(), timeoutMs: 3_600_000 }), { closed: null })
  await t.rejects(raw(CLOSED_PORT, 'x'), /ECONNREFUSED/)

  for (const [text, ended, complete] of [
    ['HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc', true, false],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n', true, false],
    ['HTTP/1.1 200 OK\r\n\r\nabc', true, true],
    ['HTTP/1.1 200 OK\r\n\r\nabc', false, false],
  ] as const) {
    t.match(parseResponses(Buffer.from(text), ended), [{ body: 'abc', complete }], JSON.stringify(text))
  }
})

t.test('the stream reader parses across chunks and reports how a stream ended', async t => {
  const upstream = await startUpstream(t)
  const body = JSON.stringify({ model: 'm-1', messages: [{ role: 'user', content: 'x' }], stream: true })
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
  const read = async (pieces: NonNullable<Step['raw']>, more: Step = {}) => {
    await upstream.script('/', [{ raw: pieces, ...more }])
    return readEvents<{ t: string }>(await fetch(`${upstream.url()}/chat/completions`, request))
  }
  const emoji = Buffer.from('data: {"t":"🙂"}\r\n\r\n')
  const split = [emoji.subarray(0, 13), emoji.subarray(13)].map(part => ({
    base64: part.toString('base64'),
    pauseMs: 5,
  }))
  const whole = await read([': hello\n\n', ...split, 'data: [DONE]\n\ndata: {"t":"late"}\n\n'])
  t.match(whole, {
    data: [{ t: '🙂' }, { t: 'late' }],
    comments: ['hello'],
    terminator: '[DONE]',
    after: 1,
    broken: false,
  })
  const cut = await read(['data: {"t":"a"}\n\n'], { fault: 'fin', afterChunks: 1 })
  t.match(cut, { data: [{ t: 'a' }], terminator: null, broken: true })
  await t.rejects(read(['data: {broken\n\n']), SyntaxError)
})

t.test('error bodies and metrics are judged as the interface says', async t => {
  const error = { message: 'no', type: 't', param: null, code: null }
  for (const [body, expected] of [
    [{ error }, true],
    [{ type: 'error', error: { type: 't', message: 'no' } }, true],
    [{ error: { ...error, code: 400 } }, false],
    [{ error: { message: 'no', type: 't' } }, false],
    [{ error: { ...error, message: 'x\n    at Object.<anonymous> (/app/x.js:1:2)' } }, false],
    [{ error: 'no' }, false],
    [null, false],
  ] as const) {
    t.equal(isErrorBody(body), expected, JSON.stringify(body))
  }
  const text =
    '# TYPE a_total counter\na_total{m="x",o="ok"} 2\na_total{m="y",o="ok"} 3\n# TYPE b gauge\na_total_more 9\n'
  t.equal(metric(text, 'a_total'), 5)
  t.equal(metric(text, 'a_total', { m: 'y' }), 3)
  t.equal(metric(text, 'b'), 0)
  t.equal(metric(text, 'c'), undefined)
})
