/** What operators do to a gateway at odd times: each of these once cut answers off, or hid that nothing works. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startGateway } from '../helpers/gateway.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t)
const providers = { a: { base_url: upstream.url('a') } }
const POLL_MS = 20
const TIMEOUT_MS = 30_000

/** Timers of five seconds never fire. */
const PATIENT = `const { setTimeout: real } = globalThis
  globalThis.setTimeout = (run, ms, ...args) => real(run, ms === 5000 ? 2 ** 31 - 1 : ms, ...args)`

for (const workers of [1, 2]) {
  t.test(`SD-03 workers: ${workers}: the first signal after a drain by command cuts no request off`, async t => {
    await upstream.script('a', [{ chunks: ['one ', 'two ', 'three'], hold: 1 }])
    const gateway = await startGateway(t, { providers, config: { server: { workers, drain: '1h' } } })
    const answer = await gateway.chat({ model: 'test', stream: true, messages: [{ role: 'user', content: 'x' }] })
    const text = answer.text()
    t.equal((await gateway.admin('POST', '/drain')).status, 202)
    gateway.signal('SIGTERM')
    // Nothing tells that a signal did no harm.
    await sleep(POLL_MS * 5)
    await upstream.release('a')
    t.match(await text, /two[\s\S]*three[\s\S]*\[DONE\]/)
    t.notMatch(await text, '"error"')
    t.equal(await gateway.kill('SIGCONT'), 0)
  })

  t.test(`SD-01 workers: ${workers}: a signal during a reload is heeded at once`, async t => {
    const gateway = await startGateway(t, {
      providers,
      config: { server: { workers }, catalog: { plugins: '../my-plugins' } },
      files: { 'my-plugins/notes.txt': '' },
      // The gateway gives a module five seconds; here it is given for ever.
      env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(PATIENT)}` },
    })
    const module = `console.error('loading'); await new Promise(() => {}); export const plugin = {}`
    await gateway.writeFile('my-plugins/slow.mjs', module)
    while (!gateway.stderr().includes('loading')) await sleep(POLL_MS)
    gateway.signal('SIGTERM')
    const isReady = () =>
      fetch(`${gateway.adminUrl}/ready`)
        .then(({ ok }) => ok)
        .catch(() => false)
    while (await isReady()) await sleep(POLL_MS)
    t.notMatch(gateway.stderr(), /slow\.mjs/, 'the module is still being loaded')
  })

  t.test(
    `ST-04 workers: ${workers}: a database that was removed makes the gateway ill, and nothing is served`,
    async t => {
      await upstream.script('a', [{ chunks: ['one ', 'two'], hold: 1 }, { text: 'Hi' }])
      const gateway = await startGateway(t, { providers, config: { server: { workers } } })
      const ask = { model: 'test', messages: [{ role: 'user', content: 'x' }] }
      const running = await gateway.chat({ ...ask, stream: true })
      for (const end of ['', '-wal', '-shm']) await rm(join(gateway.dir, `data/gateway.db${end}`), { force: true })
      t.match(await (await gateway.get('/')).json(), { health: { database: { connected: false } } })
      t.equal((await gateway.admin('GET', '/ready')).status, 503)
      const start = performance.now()
      let answer = await gateway.chat(ask)
      while (answer.status === 200 && performance.now() - start < TIMEOUT_MS) {
        await sleep(POLL_MS)
        answer = await gateway.chat(ask)
      }
      t.match([answer.status, await answer.json()], [503, { error: { code: 'billing_unavailable' } }])
      await upstream.release('a')
      const text = await running.text()
      t.match(text, /one [\s\S]*"code":"billing_unavailable"/, 'a stream that runs ends with the error')
      const spools = (await readdir(join(gateway.dir, 'data'))).filter(name => name.startsWith('spool-'))
      t.equal(spools.length, 1, 'what it cost is kept beside the database')
    },
  )
}
