/** The simulated provider: within the process, as fast as its reader takes its answer, and bounded in what it reads. */
import t from 'tap'
import { DemoProvider } from '../../src/demo/provider.ts'
import { operations } from '../../src/operations/index.ts'
import { callInProcess } from '../../src/upstream/in-process-call.ts'

const demo = new DemoProvider(Object.values(operations))
const JSON_TYPE = 'application/json'
const ask = (path: string, body: unknown) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const { status, chunks } = demo.answer({ method: 'POST', path, contentType: JSON_TYPE, body: Buffer.from(text) })
  return { status, text: Buffer.concat([...chunks]).toString() }
}
const saying = (content: string, more: object = {}) => ({
  model: 'demo',
  messages: [{ role: 'user', content }],
  ...more,
})

t.test('what is too much for the demo is refused with what would be right', t => {
  const rows: [says: string, path: string, body: unknown, message: RegExp][] = [
    ['a body of 31 MB', '/v1/chat/completions', saying('x'.repeat(31e6)), /bodies of at most 4194304 bytes/],
    ['a long prompt', '/v1/chat/completions', saying('word '.repeat(200_000)), /at most 32768 tokens/],
    [
      'thousands of inputs',
      '/v1/embeddings',
      { model: 'demo-embed', input: Array(4000).fill('a') },
      /at most 2048 inputs/,
    ],
    ['thousands of texts', '/v1/moderations', { model: 'm', input: Array(4000).fill('a') }, /at most 256 texts/],
    [
      'many tokens in many inputs',
      '/v1/embeddings',
      { model: 'demo-embed', input: Array(100).fill(Array(8000).fill(1)) },
      /at most 32768 tokens of all inputs, got 800000/,
    ],
    ['many documents', '/v1/rerank', { model: 'm', query: 'a', documents: Array(4000).fill('a') }, /at most 1000/],
    [
      'many questions',
      '/v1/systemone',
      { model: 'm', questions: Object.fromEntries(Array.from({ length: 400 }, (_, at) => [at, { type: 'noul' }])) },
      /at most 256, got 400/,
    ],
    [
      'a question of many levels',
      '/v1/systemone',
      { model: 'm', questions: { a: { type: 'score', criteria: Array(5000).fill('x') } } },
      /at most 4096 criteria of all, got 5000/,
    ],
    ['many images', '/v1/images/generations', { model: 'm', prompt: 'x', n: 1e9 }, /n: from 1 to 10, got 1000000000/],
    [
      'many previews',
      '/v1/images/generations',
      { model: 'm', prompt: 'x', stream: true, partial_images: 1e9 },
      /partial_images: from 0 to 3/,
    ],
    ['no JSON', '/v1/chat/completions', '{', /cannot read the request/],
    ['a body of another form', '/v1/chat/completions', '[]', /cannot read the request/],
    ['another path', '//', {}, /does not serve/],
  ]
  for (const [says, path, body, message] of rows) {
    const { status, text } = ask(path, body)
    t.ok(status === 400 || status === 404, says)
    t.match(text, message, says)
  }
  const { text } = ask('/v1/chat/completions', saying('word '.repeat(20_000)))
  t.ok(text.length < 20_000, 'an answer has 4,096 tokens at most')
  t.end()
})

t.test('a stream is made no faster than its reader takes it', t => {
  let made = 0
  const chunks = function* () {
    for (; made < 1000; made++) yield Buffer.from('x')
  }
  const answer = { status: 200, contentType: 'text/plain', chunks: { [Symbol.iterator]: chunks } }
  const provider = { answer: () => answer, connect: () => undefined }
  let taken = 0
  callInProcess(
    provider,
    { method: 'GET', path: '/', headers: [], body: undefined },
    {
      onResponseData(controller) {
        if (++taken === 10) controller.pause()
        if (taken === 20) controller.abort(new Error('enough'))
      },
      onResponseStart(controller) {
        setImmediate(() => {
          t.strictSame([taken, made], [10, 9], 'nothing is made while it pauses')
          controller.resume()
        })
      },
      onResponseError(_controller, error) {
        t.equal(error.message, 'enough')
        t.equal(taken, 20)
        t.end()
      },
    },
  )
})

t.test('a session ignores what is no event, and a path without sessions opens none', async t => {
  t.equal(demo.connect('//'), undefined)
  t.equal(demo.connect('/v1/chat'), undefined)
  const socket = demo.connect('/v1/realtime?model=demo-realtime')!
  const types: string[] = []
  const nothing = () => undefined
  const closed = new Promise<number>(resolve => {
    socket.open({
      message: text => void types.push((JSON.parse(text!) as { type: string }).type),
      ...{ pinged: nothing, pong: nothing, read: nothing, drained: nothing, closed: resolve },
    })
  })
  for (const text of ['{', '[]', 'null', '{"type":"response.create"}']) socket.send(text)
  while (types.at(-1) !== 'response.done') await new Promise(resolve => setImmediate(resolve))
  t.equal(types[0], 'session.created')
  socket.send(' '.repeat(2 * 1024 * 1024))
  t.equal(await closed, 1009)
})

t.test('a session transcribes committed audio', async t => {
  const socket = demo.connect('/v1/realtime?intent=transcription')!
  const got: Record<string, unknown>[] = []
  const nothing = () => undefined
  socket.open({
    message: text => void got.push(JSON.parse(text!) as Record<string, unknown>),
    ...{ pinged: nothing, pong: nothing, read: nothing, drained: nothing, closed: nothing },
  })
  const transcription = { model: 'demo-transcribe' }
  const update = { type: 'session.update', session: { type: 'transcription', audio: { input: { transcription } } } }
  const second = { type: 'input_audio_buffer.append', audio: Buffer.alloc(48_000).toString('base64') }
  const commit = { type: 'input_audio_buffer.commit' }
  for (const event of [commit, update, second, commit]) socket.send(JSON.stringify(event))
  while (got.at(-1)?.type !== 'conversation.item.input_audio_transcription.completed') {
    await new Promise(resolve => setImmediate(resolve))
  }
  const committed = got.filter(({ type }) => type === 'input_audio_buffer.committed')
  t.equal(committed.length, 2)
  t.match(got.at(-1), {
    item_id: committed[1]!.item_id,
    transcript: '1.0 seconds of audio',
    usage: { type: 'duration', seconds: 1 },
  })
  socket.close(1000, '')
})

t.test('a session ends where its events are not taken, or what it gets cannot be answered', async t => {
  const rows: [says: string, text: string, times: number, code: number][] = [
    ['unread events', JSON.stringify({ type: 'session.update', session: { x: 'x'.repeat(1_000_000) } }), 5, 1009],
    [
      'nesting without end',
      `{"type":"session.update","session":{"x":${'['.repeat(400_000)}${']'.repeat(400_000)}}}`,
      1,
      1011,
    ],
  ]
  for (const [says, text, times, code] of rows) {
    const socket = demo.connect('/v1/realtime')!
    const nothing = () => undefined
    const closed = new Promise<number>(resolve => {
      socket.open({
        ...{ message: nothing, pinged: nothing, pong: nothing, read: nothing, drained: nothing, closed: resolve },
      })
    })
    socket.pause()
    for (let at = 0; at < times; at++) socket.send(text)
    t.equal(await closed, code, says)
  }
})
