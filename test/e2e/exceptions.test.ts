/** A module of the operator's that throws: within a request it costs that request, anywhere else the process ends well. */
import t from 'tap'
import { type Gateway, startGateway } from '../helpers/gateway.ts'
import { isErrorBody } from '../helpers/invariants.ts'
import { pause } from '../helpers/pause.ts'
import { startUpstream } from '../helpers/upstream.ts'

const FILTER = `
export const plugin = {
  filters: [{
    name: 'clumsy',
    options: { json: { type: 'object', properties: {} } },
    create: () => ({
      async handle(ex, next) {
        switch (ex.header('x-throw')) {
          case 'before': throw new TypeError('a secret of mine')
          case 'after': await next(); throw new TypeError('a secret of mine')
          case 'reject': return Promise.reject('a secret of mine')
          case 'outside': setTimeout(() => { throw new TypeError('thrown by a timer') }, 10); break
          case 'unhandled': void Promise.reject(new TypeError('nobody catches this')); break
        }
        return next()
      },
      finish(ex) {
        if (ex.header('x-throw') === 'finish') throw new TypeError('a secret of mine')
      },
    }),
  }],
}
`
const upstream = await startUpstream(t)
const start = () =>
  startGateway(t, {
    providers: { a: { base_url: upstream.url('a'), timeouts: { idle: '30s' } } },
    config: { catalog: { plugins: '../my-plugins' } },
    files: { 'my-plugins/clumsy.mjs': FILTER },
    chains: {
      inference: ['auth', 'ratelimit', { clumsy: {} }, 'route', 'translate', 'billing', 'telemetry'],
      local: ['auth', 'ratelimit'],
    },
  })
const ask = async (gateway: Gateway, how: string) => {
  const response = await gateway.chat('Hi', { 'x-throw': how })
  return { status: response.status, text: await response.text() }
}

t.test('CS-07 what is thrown within a request is a 500 that shows nothing of it, and all others go on', async t => {
  const gateway = await start()
  const { pid } = gateway
  for (const how of ['before', 'after', 'reject']) {
    const { status, text } = await ask(gateway, how)
    t.equal(status, 500, how)
    t.ok(isErrorBody(JSON.parse(text)))
    t.notMatch(text, 'secret', how)
    t.equal((await ask(gateway, 'never')).status, 200)
  }
  t.equal((await ask(gateway, 'finish')).status, 200, 'an answer that was given stays so')
  t.equal((await ask(gateway, 'never')).status, 200)
  t.equal(gateway.pid, pid)
  const books = await gateway.admin('POST', '/commands/usage.check')
  t.strictSame(await books.json(), { differences: [] })
})

for (const how of ['outside', 'unhandled']) {
  t.test(`CS-07 what is thrown ${how} drains the process, which ends with 1; what runs is answered`, async t => {
    await upstream.reset()
    const gateway = await start()
    await upstream.script('a', [{ chunks: ['one ', 'two'], hold: 1 }, {}])
    const running = await gateway.chat({ model: 'test', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
    t.equal(running.status, 200)
    const thrower = ask(gateway, how).catch(() => undefined)
    const deadline = Date.now() + 30_000
    const accepts = () =>
      fetch(gateway.url).then(
        async response => response.text().then(() => true),
        () => false,
      )
    while ((await accepts()) && Date.now() < deadline) await pause()
    await upstream.release('a')
    t.match(await running.text(), /two[\s\S]*data: \[DONE\]/)
    await thrower
    t.equal(await gateway.kill(), 1)
    t.match(gateway.stderr(), how === 'outside' ? /uncaughtException/ : /unhandledRejection/)
    await gateway.restart()
    t.equal((await ask(gateway, 'never')).status, 200)
    t.match(await (await gateway.admin('POST', '/commands/credits.show', { organization: 'default' })).json(), {
      held: '0',
    })
  })
}
