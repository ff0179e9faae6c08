/** The sign-in of a program in a real browser that runs no scripts: by keyboard, on a small screen, and in no frame. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { chromium, startBrowser } from '../helpers/browser.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { callTool } from '../helpers/mcp.ts'
import { Program } from '../helpers/oauth.ts'
import { startUpstream } from '../helpers/upstream.ts'

t.test('a person signs in with a browser', { skip: !chromium && 'chromium is not installed' }, async t => {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, { providers: { a: { base_url: upstream.url('a') } } })
  const command = commandsOf(gateway)
  const browser = await startBrowser(t)

  const visits: IncomingMessage[] = []
  const server = createServer((req, res) => {
    visits.push(req)
    res.setHeader('content-type', 'text/html')
    if (req.url!.startsWith('/frame?')) res.end(`<iframe src="${decodeURIComponent(req.url!.slice(7))}"></iframe>`)
    else res.end('<title>back</title>')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const redirect = `${own}/cb`
  const program = new Program(gateway)
  await program.register({ redirect_uris: [redirect], client_name: 'A program' })
  const url = (state: string) =>
    `${gateway.url}/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: program.id,
      redirect_uri: redirect,
      state,
      code_challenge: program.challenge,
      code_challenge_method: 'S256',
    })}`
  /** The request that came back last. */
  const back = () => {
    const { url, headers } = visits.filter(({ url }) => url!.startsWith('/cb')).at(-1)!
    return { parameters: new URL(url!, own).searchParams, headers }
  }

  const tab = await browser.tab()
  const focus = () => tab.read<string>('document.activeElement.name + document.activeElement.value')
  /** The focus is where it is typed once the page is drawn, which may be after it is loaded. */
  const open = async (state: string, page = tab) => {
    await page.open(url(state))
    for (let looks = 0; looks < 1000; looks++) {
      if ((await page.read('document.activeElement.name')) === 'credential') return
    }
  }
  await t.test('the page says what it is, fits, and has the focus where it is typed', async t => {
    await open('one')
    t.equal(await tab.read('document.title'), 'Connect A program')
    t.equal(await tab.read("document.querySelectorAll('h1,main').length"), 2)
    t.equal(await tab.read('document.documentElement.scrollWidth <= 320'), true)
    t.equal(await tab.read("getComputedStyle(document.querySelector('[type=password]')).boxSizing"), 'border-box')
    t.equal(
      await tab.read("document.querySelector('[type=password]').labels[0].textContent"),
      'API key or one-time code',
    )
    t.equal(await focus(), 'credential')
    t.equal(await tab.read('document.cookie'), '', 'no script could read the cookie')
  })

  await t.test('a wrong key, then the right one, each sent with Enter', async t => {
    await tab.type('mgw_wrong')
    await tab.loads(() => tab.press('Enter', '\r'))
    t.match(await tab.read('document.querySelector("[role=alert]").textContent'), /cannot be used here/)
    t.equal(await focus(), 'credential', 'what was typed is gone')
    await tab.type(gateway.key)
    await tab.loads(() => tab.press('Enter', '\r'))
    t.equal(await tab.read('document.title'), 'back')
    const { parameters, headers } = back()
    t.equal(parameters.get('state'), 'one')
    t.equal(headers.referer, undefined)
    const { body } = await program.redeem(parameters.get('code')!, { redirect_uri: redirect })
    const account = await callTool(gateway, 'get-account', {}, { authorization: `Bearer ${body.access_token}` })
    t.match(account.structuredContent, { apiKey: { name: 'default' } })
  })

  await t.test('a login code, and one scope less, by the keyboard alone', async t => {
    await command('members.add', { organization: 'default', email: 'ada@a.example', role: 'developer' })
    const login = { organization: 'default', member: 'ada@a.example' }
    const { code } = await command<{ code: string }>('members.login-link', login)
    await open('two')
    await tab.read('document.querySelector("[value=\'mcp:tools\']").focus()')
    await tab.press(' ', ' ')
    await tab.press('Tab')
    await tab.press('Tab')
    t.equal(await focus(), 'credential')
    await tab.type(code)
    await tab.press('Tab')
    t.equal(await focus(), 'actionallow')
    await tab.loads(() => tab.press(' ', ' '))
    t.equal(await tab.read('document.title'), 'back')
    const { body } = await program.redeem(back().parameters.get('code')!, { redirect_uri: redirect })
    t.equal(body.scope, 'usage:read')
  })

  await t.test('O16 Deny needs nothing', async t => {
    await open('three')
    await tab.press('Tab')
    await tab.press('Tab')
    t.equal(await focus(), 'actiondeny')
    await tab.loads(() => tab.press('Enter', '\r'))
    t.equal(back().parameters.get('error'), 'access_denied')
  })

  await t.test('X7 the page of an older tab is refused', async t => {
    await open('four')
    const newer = await browser.tab()
    await open('five', newer)
    await tab.type(gateway.key)
    await tab.loads(() => tab.press('Enter', '\r'))
    t.match(await tab.read('document.body.textContent'), /has opened a newer page of this kind/)
    await newer.type(gateway.key)
    await newer.loads(() => newer.press('Enter', '\r'))
    t.equal(back().parameters.get('state'), 'five')
  })

  await t.test('O13 no page of another site shows it in a frame', async t => {
    const entries: string[] = []
    browser.on('Log.entryAdded', ({ entry }) => entries.push((entry as { text: string }).text))
    await tab.open(`${own}/frame?${encodeURIComponent(url('six'))}`)
    t.match(entries.join('\n'), /frame-ancestors/)
  })
})
