/** The page over a real socket, with a fake gateway behind it. */
import t, { type Test } from 'tap'
import { adminListener } from '../../src/admin/server.ts'
import type { Log } from '../../src/core/ports.ts'
import { createUi } from '../../src/ui/server.ts'
import { fakeContext, TOKEN } from '../admin/fake.ts'

async function start(t: Test) {
  const context = fakeContext()
  const logged: string[] = []
  const keep = (_: object, message: string) => logged.push(message)
  const log: Log = { debug: keep, info: keep, warn: keep, error: keep }
  const page = createUi({ context, token: TOKEN, log, readConfig: async () => undefined })
  const listener = await adminListener({ context, token: TOKEN, listen: '127.0.0.1:0', log, page })
  t.teardown(() => listener.close())
  const send = async (method: string, path: string, fields?: Record<string, string>, cookie = '') => {
    const body = fields && new URLSearchParams(fields)
    const init = { method, headers: { cookie }, redirect: 'manual', ...(body && { body }) } as const
    const response = await fetch(`http://${listener.address}${path}`, init)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const { headers } = await send('POST', '/ui/sign-in', { token: TOKEN })
  const cookie = headers.get('set-cookie')!.split(';')[0]!
  const csrf = /name="csrf" value="([^"]+)"/.exec((await send('GET', '/ui/keys', undefined, cookie)).text)![1]!
  return { context, logged, send, cookie, csrf }
}

t.test('drain and reload happen once they are confirmed, and not before', async t => {
  const { context, send, cookie, csrf } = await start(t)
  t.match((await send('GET', '/ui/confirm?action=drain', undefined, cookie)).text, /gatewayctl drain/)
  t.equal((await send('POST', '/ui/confirm', { action: 'drain' }, cookie)).status, 403)
  t.equal((await send('POST', '/ui/confirm', { action: 'drain', csrf })).status, 303, 'without a session')
  t.equal(context.drained, 0)
  t.match((await send('POST', '/ui/confirm', { action: 'drain', csrf }, cookie)).text, /The gateway drains/)
  t.equal(context.drained, 1)
  t.match((await send('POST', '/ui/confirm', { action: 'reload', csrf }, cookie)).text, /def456 is in effect now/)
  context.reloadFault = new Error('worker 1 did not load it')
  const refused = await send('POST', '/ui/confirm', { action: 'reload', csrf }, cookie)
  t.equal(refused.status, 400)
  t.match(refused.text, /worker 1 did not load it/)
})

t.test('a failure of the store says nothing of its cause, and is logged', async t => {
  const { context, logged, send, cookie, csrf } = await start(t)
  context.storeFault = new Error('disk of /secret/path is full')
  const answer = await send('POST', '/ui/confirm', { action: 'keys.revoke', id: 'k1', csrf }, cookie)
  t.equal(answer.status, 500)
  t.notMatch(answer.text, /secret/)
  t.strictSame(logged, ['page failed'])
})

t.test('a part that is read again goes on being read', async t => {
  const { send, cookie } = await start(t)
  const live = /hx-get="([^"]+)" hx-trigger="every/
  const [, address] = live.exec((await send('GET', '/ui/requests?live=1&status=500', undefined, cookie)).text)!
  t.match((await send('GET', address!.replaceAll('&#38;', '&'), undefined, cookie)).text, live)
  t.notMatch((await send('GET', '/ui?live=0', undefined, cookie)).text, live)
  t.match((await send('GET', '/ui', undefined, cookie)).text, live)
})

t.test('methods, bodies and paths that no page has are refused', async t => {
  const { send, cookie, csrf } = await start(t)
  t.equal((await send('DELETE', '/ui', undefined, cookie)).status, 405)
  t.equal((await send('POST', '/ui/keys', { csrf }, cookie)).status, 405)
  t.equal((await send('GET', '/ui/nothing', undefined, cookie)).status, 404)
  t.equal((await send('GET', '/ui/keys/%E0%A4%A', undefined, cookie)).status, 404)
  t.equal((await send('GET', '/uix', undefined, cookie)).status, 401, 'it is none of the page')
  t.equal((await send('POST', '/ui/sign-in', { token: 'x'.repeat(300_000) })).status, 413)
  t.equal((await send('HEAD', '/ui', undefined, cookie)).text, '')
})
