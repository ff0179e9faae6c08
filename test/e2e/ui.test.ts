/** The page at `/ui` of the admin listener: who may use it, what it shows, and how it looks in a browser. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { chromium, startBrowser, type Tab } from '../helpers/browser.ts'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { raw } from '../helpers/raw.ts'
import { root } from '../helpers/sources.ts'
import { startUpstream } from '../helpers/upstream.ts'

/** With `WRITE_IMAGES`, the test writes the images of docs/ui.md, in which names are ordinary ones. */
const writes = process.env.WRITE_IMAGES !== undefined
const MARKUP = writes ? 'web-app' : '<img src=x onerror=document.title=1>'

const upstream = await startUpstream(t)
const gateway = await startGateway(t, {
  providers: {
    first: { base_url: upstream.url('first'), priority: 2 },
    second: { base_url: upstream.url('second'), models: [{ ...testMapping, id: 'test-2' }] },
  },
})
const command = commandsOf(gateway)
const { key, id: keyId } = await command<{ key: string; id: string }>('keys.create', {
  project: 'default',
  name: MARKUP,
})

/** A failover, an unknown model and a stream. */
await upstream.script('first', [{ status: 500, body: { error: { message: 'broken' } } }])
await gateway.chat('one', { authorization: `Bearer ${key}`, 'x-gateway-tags': 'team=red' })
await gateway.chat({ model: MARKUP, messages: [{ role: 'user', content: 'two' }] })
await (await gateway.chat({ model: 'test', stream: true, messages: [{ role: 'user', content: 'three' }] })).text()

const { rows: logged } = await command<{ rows: { id: string }[] }>('requests.list')

/** Every page, and a text that it shows. */
const pages: readonly (readonly [path: string, text: string])[] = [
  ['/ui', 'Providers now'],
  ['/ui/spend', 'Figures of the chart'],
  ['/ui/spend?by=api_key&period=24h&measure=requests', 'Sums by key'],
  ['/ui/spend?by=tag&tag=team', 'href="/ui/requests?tag=team%3Dred"'],
  ['/ui/spend?by=end_user&period=24h', 'Sums by end user'],
  ['/ui/requests', 'Filters'],
  [`/ui/requests/${logged.at(-1)!.id}`, 'second from '],
  ['/ui/models', 'first'],
  ['/ui/models/test', 'Prices as declared'],
  ['/ui/routes?model=test', 'would be tried first'],
  ['/ui/keys', '&#60;img src=x'],
  ['/ui/organizations', 'Balance'],
  ['/ui/organizations/default', 'Payments and refunds'],
  ['/ui/jobs', 'Newest videos'],
  ['/ui/config', 'In effect'],
  ['/ui/config?part=providers:first', 'base_url'],
  ['/ui/playground', 'Events as they came'],
  ['/ui/setup', 'codex'],
  [`/ui/confirm?action=keys.revoke&id=${keyId}`, 'gatewayctl keys revoke'],
]

const fetchPage = (path: string, init: RequestInit = {}) =>
  fetch(`${gateway.adminUrl}${path}`, { redirect: 'manual', ...init })
const form = (fields: Record<string, string>, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  body: new URLSearchParams(fields),
  headers,
})
/** The cookie of a browser that has just signed in. */
async function signedIn(): Promise<string> {
  const { status, headers } = await fetchPage('/ui/sign-in', form({ token: gateway.token }))
  if (status !== 303) throw new Error(`the sign-in was answered by ${status}`)
  return headers.get('set-cookie')!.split(';')[0]!
}

t.test('without a session every page leads to the sign-in and shows nothing', async t => {
  for (const path of [...pages.map(([path]) => path), '/ui/nothing']) {
    const answer = await fetchPage(path)
    t.equal(answer.status, 303, path)
    t.match(answer.headers.get('location'), /^\/ui\/sign-in/)
    t.equal(await answer.text(), '')
  }
  const part = await fetchPage('/ui', { headers: { 'hx-request': 'true' } })
  t.equal(part.status, 401)
  t.equal(part.headers.get('hx-redirect'), '/ui/sign-in')
  t.equal((await fetchPage('/ui/requests', { headers: { cookie: 'gateway_ui=x' } })).status, 303)
})

t.test('a wrong token is refused, the right one makes a cookie that scripts cannot read', async t => {
  const refused = await fetchPage('/ui/sign-in', form({ token: 'wrong' }))
  t.equal(refused.status, 401)
  t.equal(refused.headers.get('set-cookie'), null)
  t.match(await refused.text(), /role="alert"/)
  const { headers } = await fetchPage('/ui/sign-in', form({ token: gateway.token, to: '/ui/requests?status=404' }))
  t.equal(headers.get('location'), '/ui/requests?status=404')
  const cookie = headers.get('set-cookie')!
  for (const part of ['HttpOnly', 'SameSite=Strict', 'Path=/ui']) t.ok(cookie.includes(part), part)
  t.notOk(cookie.includes(gateway.token))
  for (const to of ['https://evil.example', '//evil.example', '/ui/../config', 'javascript:1', '/uix']) {
    const { headers } = await fetchPage('/ui/sign-in', form({ token: gateway.token, to }))
    t.equal(headers.get('location'), '/ui', to)
  }
})

t.test('no other origin can drive the page, and no other name leads to it', async t => {
  const cookie = await signedIn()
  const foreign = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ]
  for (const headers of foreign) {
    const answer = await fetchPage('/ui/sign-in', form({ token: gateway.token }, headers as Record<string, string>))
    t.equal(answer.status, 403, JSON.stringify(headers))
    const out = await fetchPage('/ui/sign-out', form({}, { cookie, ...headers } as Record<string, string>))
    t.equal(out.status, 403)
  }
  const script = { cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }
  t.equal((await fetchPage('/ui', { headers: script })).status, 403)
  t.equal((await fetchPage('/ui/sign-out', form({ csrf: 'wrong' }, { cookie }))).status, 403)
  t.equal((await fetchPage('/ui', { headers: { cookie } })).status, 200, 'the session goes on')
  const { status: rebound } = await raw(
    gateway.adminPort,
    `GET /ui HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`,
  )
  t.equal(rebound, 403)
  const command = await fetchPage('/commands/status', { method: 'POST', headers: { cookie } })
  t.equal(command.status, 401, 'the cookie opens nothing but the page')
})

t.test('a sign-out ends the session', async t => {
  const cookie = await signedIn()
  const text = await (await fetchPage('/ui', { headers: { cookie } })).text()
  const csrf = /name="csrf" value="([^"]+)"/.exec(text)![1]!
  const out = await fetchPage('/ui/sign-out', form({ csrf }, { cookie, origin: gateway.adminUrl }))
  t.equal(out.status, 303)
  t.match(out.headers.get('set-cookie'), /Max-Age=0/)
  t.equal((await fetchPage('/ui', { headers: { cookie } })).status, 303)
})

t.test('every page has its headers, shows no secret, and keeps markup as text', async t => {
  const cookie = await signedIn()
  for (const [path, shown] of pages) {
    const answer = await fetchPage(path, { headers: { cookie } })
    const text = await answer.text()
    t.equal(answer.status, 200, path)
    t.ok(text.includes(shown), `${path} shows ${shown}`)
    const policy = answer.headers.get('content-security-policy')!
    t.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'/)
    t.notMatch(policy, /unsafe|\*/)
    t.equal(answer.headers.get('x-frame-options'), 'DENY')
    t.equal(answer.headers.get('cache-control'), 'no-store')
    for (const secret of [gateway.token, gateway.key, key, upstreamSecret, cookie.split('=')[1]!])
      t.notOk(text.includes(secret), `${path} shows no secret`)
    if (!writes) t.notOk(text.includes(MARKUP), `${path} escapes markup`)
    t.notMatch(text, /\sstyle=|\son\w+="|<style|<script(?![^>]*\ssrc="\/ui\/static\/)/, `${path} has nothing inline`)
  }
})

t.test('the log filters, and shows the attempts of one request', async t => {
  const cookie = await signedIn()
  const show = async (path: string) => (await fetchPage(path, { headers: { cookie } })).text()
  const failed = await show('/ui/requests?status=404')
  t.match(failed, /model_not_found/)
  t.match(failed, /&#60;img src=x/)
  const one = await show(`/ui/requests?key=${keyId}`)
  const [, id] = /href="\/ui\/requests\/([\w-]+)"/.exec(one)!
  const details = await show(`/ui/requests/${id}`)
  t.match(details, /<svg role="img" aria-label="first from /)
  t.match(details, /second from /)
  t.ok(one.includes('&#60;img src=x onerror=document.title=1&#62;</a>'), 'names of keys are shown')
  const refused = await show('/ui/requests?slower=soon')
  t.match(refused, /role="alert">Argument/)
  t.match(refused, /name="slower"[^>]*value="soon"/, 'the form can be corrected')
  t.match(await show('/ui/requests?status=many'), /role="alert">Argument/)
  t.match(await show('/ui/requests/unknown'), /There is no row/)
})

t.test('a list that is cut says so, and how to see the rest', async t => {
  const cookie = await signedIn()
  const { id } = await command<{ id: string }>('orgs.create', { name: 'many' })
  const page = async () => (await fetchPage(`/ui/organizations/${id}`, { headers: { cookie } })).text()
  for (let made = 0; made < 99; made++) await command('projects.create', { organization: id, name: `project ${made}` })
  t.notMatch(await page(), 'are shown')
  await command('projects.create', { organization: id, name: 'one more' })
  t.match(await page(), `At most 100 are shown. <code>gatewayctl projects list --org ${id}</code>`)
})

t.test('a page that updates itself says when it was read', async t => {
  const cookie = await signedIn()
  for (const path of ['/ui', '/ui/requests'])
    t.match(await (await fetchPage(path, { headers: { cookie } })).text(), /As of <time datetime="20/, path)
})

t.test('a change needs its confirmation, and shows in the audit log who made it', async t => {
  const cookie = await signedIn()
  const { id } = await command<{ id: string }>('keys.create', { project: 'default', name: 'short-lived' })
  const path = `/ui/confirm?action=keys.revoke&id=${id}`
  const asked = await (await fetchPage(path, { headers: { cookie } })).text()
  t.match(asked, 'short-lived')
  const isActive = async () =>
    (await command<{ id: string; status: string }[]>('keys.list')).find(one => one.id === id)?.status === 'active'
  t.ok(await isActive(), 'showing the question changes nothing')
  const csrf = /name="csrf" value="([^"]+)"/.exec(asked)![1]!
  const fields = { action: 'keys.revoke', id }
  t.equal((await fetchPage('/ui/confirm', form(fields, { cookie }))).status, 403)
  const other = { cookie: await signedIn() }
  t.equal((await fetchPage('/ui/confirm', form({ ...fields, csrf }, other))).status, 403, 'a token of another session')
  t.ok(await isActive())
  const done = await fetchPage('/ui/confirm', form({ ...fields, csrf }, { cookie, origin: gateway.adminUrl }))
  t.match(await done.text(), /The key short-lived is revoked/)
  t.notOk(await isActive())
  const [line] = await command<{ actor: string; action: string }[]>('audit', { limit: 1 })
  t.match(line, { actor: 'ui', action: 'keys.revoke' })
  for (const name of ['keys.create', 'credits.add', '__proto__', ''])
    t.equal((await fetchPage('/ui/confirm', form({ action: name, id, csrf }, { cookie }))).status, 404, name)
})

t.test('the playground passes on a stream, and errors as they are', async t => {
  const cookie = await signedIn()
  const text = await (await fetchPage('/ui/playground', { headers: { cookie } })).text()
  const csrf = /name="csrf" value="([^"]+)"/.exec(text)![1]!
  const messages = JSON.stringify([{ role: 'user', content: 'Hello' }])
  const ask = (fields: Record<string, string>) =>
    fetchPage('/ui/playground', form({ csrf, model: 'test', messages, ...fields }, { cookie }))
  const answer = await ask({ parameters: '{"max_tokens": 50}' })
  t.match(answer.headers.get('content-type'), /^text\/event-stream/)
  const events = await answer.text()
  t.match(events, /"content":"ec"/)
  t.match(events, /data: \[DONE\]/)
  t.equal((await ask({ model: 'unknown' })).status, 404)
  t.equal((await ask({ messages: 'Hello' })).status, 400)
  t.equal((await ask({ project: 'unknown' })).status, 404)
  t.equal((await fetchPage('/ui/playground', form({ model: 'test', messages }, { cookie }))).status, 403)
})

t.test('a refused reload is marked in its file, without the secrets of that file', async t => {
  const cookie = await signedIn()
  const path = 'providers.d/broken.yaml'
  const secret = 'value-of-no-known-form-4711'
  await gateway.writeFile(
    path,
    `provider: broken
name: Broken
base_url: https://api.example.com
auth: { scheme: bearer, secret: ${secret} }
headers:
  x-anything: "${secret}"
wires: { chat: no.such.wire }
models: []
`,
  )
  const csrf = async () =>
    /name="csrf" value="([^"]+)"/.exec(await (await fetchPage('/ui', { headers: { cookie } })).text())![1]!
  const reload = async () =>
    (await fetchPage('/ui/confirm', form({ action: 'reload', csrf: await csrf() }, { cookie }))).text()
  t.match(await reload(), /role="alert">providers\.d\/broken\.yaml:\d+/)
  const shown = await (await fetchPage('/ui/config', { headers: { cookie } })).text()
  t.match(shown, /<mark>&#62; +7 {2}wires/)
  t.notOk(shown.includes(secret), 'no secret')
  await gateway.writeFile(path, '# nothing\n')
  await rm(join(gateway.dir, path))
  t.match(await reload(), /The configuration \w+ is/)
  t.notMatch(await (await fetchPage('/ui/config', { headers: { cookie } })).text(), /<mark>/)
})

t.test('files are sent compressed, and under the names that are known', async t => {
  const file = await fetchPage('/ui/static/htmx.js')
  t.equal(file.headers.get('content-encoding'), 'gzip')
  t.match(file.headers.get('content-type'), /^text\/javascript/)
  t.ok((await file.text()).length > 10_000)
  const again = await fetchPage('/ui/static/htmx.js', { headers: { 'if-none-match': file.headers.get('etag')! } })
  t.equal(again.status, 304)
  for (const name of ['nothing.js', '../server.ts', '..%2fserver.ts', 'toString', '']) {
    const { status } = await fetchPage(`/ui/static/${name}`)
    t.ok(status === 404 || status === 303, `${name}: ${status}`)
  }
})

const MAX_PAGE_BYTES = 100_000
const IMAGES = join(root, 'docs/images')
/** Pages that are shown in docs, by the name of their image. */
const images: Readonly<Record<string, string>> = {
  'ui-overview': '/ui',
  'ui-spend': '/ui/spend?period=24h',
  'ui-request': `/ui/requests/${logged.at(-1)!.id}`,
}

/** Usage of a day, for the chart in docs. */
async function addUsage(): Promise<void> {
  const { default: Database } = await import('better-sqlite3')
  const db = new Database(join(gateway.dir, 'data/gateway.db'))
  const insert = db.prepare(`
    INSERT INTO usage_hourly (hour, org_id, project_id, key_id, provider, model, source, requests, errors, cached,
      input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost)
    SELECT ?, org_id, project_id, key_id, provider, ?, source, ?, ?, 0, ?, ?, 0, 0, ? FROM usage_hourly
    WHERE provider <> '' ORDER BY hour DESC LIMIT 1`)
  const hour = Math.floor(Date.now() / 3_600_000)
  for (let ago = 1; ago < 24; ago++) {
    for (const [model, share] of [
      ['large', 5],
      ['small', 3],
      ['embeddings', 1],
    ] as const) {
      const requests = Math.round(share * (60 + 40 * Math.sin(ago / 3.5 + share)))
      const values = [requests, Math.round(requests / 40), requests * 900, requests * 300, requests * share * 1_100_000]
      insert.run((hour - ago) * 3_600_000, model, ...values)
    }
  }
  db.close()
}

t.test('in a browser', { skip: !chromium && 'chromium is not installed' }, async t => {
  const browser = await startBrowser(t)
  const complaints: string[] = []
  browser.on('Log.entryAdded', ({ entry }) => {
    const { level, text } = entry as { level: string; text: string }
    if (level === 'error') complaints.push(text)
  })
  browser.on('Runtime.exceptionThrown', params => complaints.push(JSON.stringify(params)))
  let received = 0
  browser.on('Network.dataReceived', ({ dataLength }) => {
    received += Number(dataLength)
  })
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  /** Serious and critical faults. */
  const check = async (t: Test, tab: Tab, name: string) => {
    await tab.evaluate(`${axe};0`)
    const found = await tab.evaluate<
      string[]
    >(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.filter(one => ['serious', 'critical'].includes(one.impact))
        .map(one => one.id + ': ' + one.nodes.map(node => node.html + ' ' + node.failureSummary).join('; ')))`)
    t.strictSame(found, [], `${name}: axe finds nothing serious`)
  }

  const wide = await browser.tab({ scripts: true, width: 1280, height: 900, dark: true })
  await t.test('a person signs in by keyboard', async t => {
    await wide.open(`${gateway.adminUrl}/ui/requests`)
    await check(t, wide, 'sign-in')
    await wide.evaluate(`document.getElementById('token').focus()`)
    await wide.type(gateway.token)
    await wide.loads(() => wide.press('Enter', '\r'))
    t.equal(await wide.read('location.pathname'), '/ui/requests')
  })
  await t.test('a chat is sent by keyboard, and shows answer, cost and events', async t => {
    await wide.open(`${gateway.adminUrl}/ui/playground?model=test`)
    await wide.evaluate(`document.getElementById('message').focus()`)
    await wide.type('Hello there')
    await wide.press('Tab')
    await wide.press('Enter', '\r')
    const shown = await wide.evaluate<string>(`new Promise(resolve => {
      const facts = document.getElementById('facts')
      const told = () => facts.textContent !== '' && resolve(document.getElementById('turns').textContent + facts.textContent)
      new MutationObserver(told).observe(facts, { childList: true, characterData: true, subtree: true })
      told()
    })`)
    t.match(shown, /You: Hello there.*Model: echo: Hello there/)
    t.match(shown, /second\/test.*tokens, \$/)
    t.match(await wide.read('document.getElementById("events").textContent'), /data: \[DONE\]/)
    await check(t, wide, 'after an answer')
  })
  const narrow = await browser.tab({ scripts: true, width: 360, height: 740 })
  if (writes) {
    await addUsage()
    await mkdir(IMAGES, { recursive: true })
    const pictured = await browser.tab({ scripts: true, width: 1120, height: 700 })
    for (const [name, path] of Object.entries(images)) {
      await pictured.open(`${gateway.adminUrl}${path}`)
      await writeFile(join(IMAGES, `${name}.png`), await pictured.screenshot())
    }
  }
  await t.test('a long name leaves the other columns in view', async t => {
    const { id } = await command<{ id: string }>('keys.create', { project: 'default', name: 'x'.repeat(200) })
    await wide.open(`${gateway.adminUrl}/ui/keys`)
    const cell = `document.querySelector('a[href$="${id}"]').closest('tr').cells[0]`
    const width = await wide.read<number>(`${cell}.getBoundingClientRect().width`)
    t.ok(width < 400, `its column has ${width} of 1280 pixels`)
    await command('keys.revoke', { id })
  })
  for (const [path] of pages) {
    await t.test(`${path} is usable, light and dark, wide and narrow`, async t => {
      received = 0
      await wide.open(`${gateway.adminUrl}${path}`)
      t.ok(received < MAX_PAGE_BYTES, `${received} bytes`)
      await check(t, wide, 'dark and wide')
      await narrow.open(`${gateway.adminUrl}${path}`)
      t.ok(await narrow.read<boolean>('document.documentElement.scrollWidth <= 360'), 'it fits into 360 pixels')
      await check(t, narrow, 'light and narrow')
      t.notOk(await narrow.read<boolean>('document.title === "1"'), 'markup does not run')
      t.strictSame(complaints.splice(0), [], 'the browser complains of nothing')
    })
  }
  await t.test('the playground says that its session is over', async t => {
    await wide.open(`${gateway.adminUrl}/ui/playground?model=test`)
    const shown = await wide.evaluate<string>(`(async () => {
      const form = document.getElementById('chat')
      const fields = new URLSearchParams({ csrf: form.elements.csrf.value })
      await fetch('/ui/sign-out', { method: 'POST', body: fields })
      const turns = document.getElementById('turns')
      const ended = new Promise(resolve => new MutationObserver(() => turns.getAttribute('aria-busy') === 'false' && resolve())
        .observe(turns, { attributes: true }))
      document.getElementById('message').value = 'Hello'
      form.requestSubmit()
      await ended
      await new Promise(resolve => setTimeout(resolve))
      return turns.textContent + document.getElementById('events').textContent
    })()`)
    t.match(shown, /the session is over/)
    t.notMatch(shown, /<html/)
  })
})
