/** A process that is killed, wherever its requests are: each is charged for what its client got, once, or not at all. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Database, type Sqlite } from '../../src/stores/sqlite/driver.ts'
import { readBooks } from '../helpers/books.ts'
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { checkInvariants } from '../helpers/invariants.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t)
const names = ['a', 'held', 'streaming', 'ended', 'settled']
const gateway = await startGateway(t, {
  providers: Object.fromEntries(
    names.map(name => [
      name,
      {
        base_url: upstream.url(name),
        timeouts: { first_event: '30s', idle: '30s' },
        models: [{ ...testMapping, model: name === 'a' ? 'test' : name }],
      },
    ]),
  ),
})
const database = join(gateway.dir, 'data/gateway.db')
const books = <T>(read: (db: Sqlite) => T) => readBooks(gateway, read)
const noted = () =>
  books(db => db.prepare<[], string>('SELECT progress FROM holds WHERE progress IS NOT NULL').pluck().get())
const command = async (name: string, args: object = {}) =>
  (await (await gateway.admin('POST', `/commands/${name}`, args)).json()) as Record<string, unknown>

t.test('CS-03 a stream that a crash cuts short is charged for what was noted of it', async t => {
  const content = 'Tell me all.'
  const told = ['one two three four ', 'five six seven eight ', 'nine ten']
  await upstream.script('a', [{ chunks: told, hold: 2, usage: { prompt: 3, completion: 100 } }])
  const response = await gateway.chat({ model: 'test', stream: true, messages: [{ role: 'user', content }] })
  const cut = response.text().catch(() => 'cut')
  const deadline = Date.now() + 30_000
  while (noted() === undefined && Date.now() < deadline) await sleep(50)
  // Nothing was reported, so that tokens are estimated: four characters each.
  const delivered = Math.ceil(told.slice(0, 2).join('').length / 4)
  const usage = { prompt: Math.ceil(content.length / 4), completion: delivered }
  const cost = usage.prompt * 1000 + usage.completion * 2000
  t.strictSame(JSON.parse(noted()!), { usage, cost: String(cost) })
  t.match(await command('credits.show', { organization: 'default' }), { used: '0' }, 'nothing is charged while it runs')
  await gateway.kill('SIGKILL')
  await cut
  await upstream.release('a')
  await gateway.restart()
  const rows = books(db => db.prepare('SELECT outcome, streamed, estimated, cost, charged FROM requests').all())
  t.match(rows, [{ outcome: 'orphaned', streamed: 1, estimated: 1, cost, charged: cost }])
  t.match(await command('credits.show', { organization: 'default' }), { used: String(cost / 1e9), held: '0' })
  t.strictSame(await command('usage.check'), { differences: [] })
  await gateway.restart()
  t.match(await command('credits.show', { organization: 'default' }), { used: String(cost / 1e9) }, 'and only once')
})

t.test('a stream that ends by itself is charged once, for what it was', async t => {
  const { used: before } = await command('credits.show', { organization: 'default' })
  await upstream.reset()
  const usage = { prompt: 3, completion: 100 }
  await upstream.script('a', [{ chunks: ['one ', 'two ', 'three'], hold: 2, usage }])
  const response = await gateway.chat({ model: 'test', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
  const deadline = Date.now() + 30_000
  while (noted() === undefined && Date.now() < deadline) await sleep(50)
  t.ok(noted())
  await upstream.release('a')
  t.match(await response.text(), /three[\s\S]*data: \[DONE\]/)
  const { used } = await command('credits.show', { organization: 'default' })
  t.equal(Math.round((Number(used) - Number(before)) * 1e9), usage.prompt * 1000 + usage.completion * 2000)
  await checkInvariants(t, gateway, upstream)
})

t.test('CS-02 wherever a request is when its process is killed, the books know what became of it', async t => {
  await upstream.reset()
  const { used: before } = await command('credits.show', { organization: 'default' })
  const usage = { prompt: 3, completion: 10 }
  await upstream.script('held', [{ hold: 0, usage }])
  await upstream.script('streaming', [{ chunks: ['four', 'more'], hold: 1, usage }])
  await upstream.script('ended', [{ hold: 0, usage }])
  await upstream.script('settled', [{ usage }])
  const ask = (model: string, stream = false) =>
    gateway
      .chat({ model, stream, messages: [{ role: 'user', content: 'Hi' }] }, { 'x-request-id': model })
      .then(response => response.text())
      .catch(() => 'cut')
  t.match(await ask('settled'), /chat\.completion/)
  const cut = [ask('streaming', true), ask('held'), ask('ended')]
  const deadline = Date.now() + 30_000
  while (noted() === undefined && Date.now() < deadline) await sleep(50)
  for (const name of ['held', 'ended']) await upstream.record(name, { requests: 1 })
  // Nothing can be written from here on, so that the answer which ends now cannot be settled, nor its end be sent.
  const lock = new Database(database)
  lock.exec('BEGIN IMMEDIATE')
  await upstream.release('ended')
  await upstream.record('ended', { ended: 1 })
  await gateway.kill('SIGKILL')
  lock.exec('ROLLBACK')
  lock.close()
  t.same(await Promise.all(cut), ['cut', 'cut', 'cut'])
  await gateway.restart()
  const rows = books(db =>
    db
      .prepare(
        "SELECT request_id, outcome, charged FROM requests WHERE request_id IN ('held', 'streaming', 'ended', 'settled')",
      )
      .all(),
  ) as { request_id: string; outcome: string; charged: number }[]
  t.same(Object.fromEntries(rows.map(({ request_id, outcome, charged }) => [request_id, `${outcome} ${charged}`])), {
    settled: 'ok 23000',
    held: 'orphaned 0',
    ended: 'orphaned 0',
    streaming: 'orphaned 3000',
  })
  const { used, held } = await command('credits.show', { organization: 'default' })
  t.equal(Math.round((Number(used) - Number(before)) * 1e9), 26_000)
  t.equal(held, '0')
  t.strictSame(await command('usage.check'), { differences: [] })
})
