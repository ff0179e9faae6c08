/**
 * `node test/nightly/mcp-conformance.mjs`: the official conformance suite of MCP against the built gateway, on the version
 * of Node that it needs, which npm's package `node` brings. Ends with 1 when a scenario fails that applies to this server.
 */
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { configure, startGateway } from '../bench/gateway.mjs'
import { Stage } from '../bench/processes.mjs'

const PACKAGES = ['node@22.23.3', '@modelcontextprotocol/conformance@0.2.0-alpha.12']
const INSTALL_MS = 600_000
const SCENARIO_MS = 120_000

const initialized = ['server-initialize', 'ping', 'tools-list']
const sessionless = ['server-sse-polling', 'server-sse-multiple-streams', 'server-session-lifecycle']
/** All others want tools, prompts, resources or logging of a fixture server. */
const SCENARIOS = {
  '2025-06-18': [...initialized, 'server-session-lifecycle'],
  '2025-11-25': [...initialized, ...sessionless, 'dns-rebinding-protection'],
  '2026-07-28': [
    'tools-list',
    'dns-rebinding-protection',
    'http-header-validation',
    'server-sse-multiple-streams',
    'server-stateless',
    'sep-2164-resource-not-found',
    'input-required-result-missing-input-response',
    'input-required-result-unsupported-methods',
    'input-required-result-ignore-extra-params',
    'input-required-result-validate-input',
  ],
}
/** Checks of `server-stateless` that call diagnostic tools, which only a fixture server has. */
const FIXTURE_CHECKS = [
  'sep-2575-server-rejects-undeclared-capability',
  'sep-2575-missing-capability-http-400',
  'sep-2575-http-server-no-independent-requests-on-stream',
  'sep-2575-server-no-log-without-loglevel',
]

/** Metadata and the code grant; a warning says that client-id documents are off, as they are without https. */
const AUTHORIZATION_CHECKS = 2

const stage = new Stage()
let proxy
try {
  const folder = await stage.folder()
  await run('npm', ['install', '--no-save', '--loglevel=error', '--prefix', folder, ...PACKAGES], INSTALL_MS)
  const gateway = await startGateway(stage, await configure(stage))
  proxy = await startProxy(new URL(gateway.url), gateway.headers.authorization)
  const cli = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
  const PATH = [join(folder, 'node_modules/node/bin'), process.env.PATH].join(delimiter)
  const url = `http://127.0.0.1:${proxy.address().port}/mcp`
  let failures = 0
  for (const [version, names] of Object.entries(SCENARIOS)) {
    for (const name of names) {
      const results = await stage.folder()
      const args = [cli, 'server', '--url', url, '--spec-version', version, '--scenario', name, '-o', results]
      const said = await run('node', args, SCENARIO_MS, { ...process.env, PATH }).catch(thrown => thrown.message)
      const checks = await checksIn(results)
      const failed = checks.filter(({ id, status }) => status === 'FAILURE' && !FIXTURE_CHECKS.includes(id))
      const passed = checks.filter(({ status }) => status !== 'FAILURE').length
      const passes = passed > 0 && failed.length === 0
      console.log(`${passes ? 'pass' : 'FAIL'} ${version} ${name}: ${passed} of ${checks.length}`)
      if (passes) continue
      failures++
      console.log(said, JSON.stringify(failed, null, 2))
    }
  }
  for (const version of Object.keys(SCENARIOS)) {
    const results = await stage.folder()
    const said = await authorization(cli, gateway, { version, results, env: { ...process.env, PATH } })
    const checks = await checksIn(results)
    const passed = checks.filter(({ status }) => status === 'SUCCESS').length
    const passes = passed === AUTHORIZATION_CHECKS && checks.every(({ status }) => status !== 'FAILURE')
    console.log(`${passes ? 'pass' : 'FAIL'} ${version} authorization: ${passed} of ${checks.length}`)
    if (passes) continue
    failures++
    console.log(said)
  }
  console.log(failures === 0 ? 'MCP conformance holds' : `MCP conformance: ${failures} scenarios failed`)
  process.exitCode = failures === 0 ? 0 : 1
} catch (thrown) {
  console.error(thrown, stage.complaints())
  process.exitCode = 1
} finally {
  proxy?.close().closeAllConnections()
  await stage.close()
}

/** The suite as a client that signs somebody in: it prints an address, and waits for whoever opens it. */
async function authorization(cli, { url, headers }, { version, results, env }) {
  const port = await freePort()
  const registered = await fetch(`${url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      redirect_uris: [`http://127.0.0.1:${port}/callback`],
      token_endpoint_auth_method: 'none',
    }),
  })
  const { client_id: client } = await registered.json()
  const args = ['authorization', '--url', url, '--client-id', client, '--port', String(port), '-o', results]
  let opened
  const see = text => {
    const [page] = /http:\S+\/oauth\/authorize\?\S+/.exec(text) ?? []
    if (page !== undefined) opened ??= consent(page, headers.authorization.replace('Bearer ', ''))
  }
  const said = await run('node', [cli, ...args, '--spec-version', version], SCENARIO_MS, env, see).catch(
    thrown => thrown.message,
  )
  await opened
  return said
}

/** What a person does on the page: pastes a key and allows. The browser then calls the program. */
async function consent(page, credential) {
  const shown = await fetch(page)
  const [, request] = /name="request" value="([^"]*)"/.exec(await shown.text())
  const body = new URLSearchParams({ request, credential, action: 'allow', scope: 'mcp:tools' })
  const cookie = shown.headers.get('set-cookie').split(';', 1)[0]
  const sent = await fetch(new URL(page).origin + new URL(page).pathname, {
    method: 'POST',
    headers: { cookie },
    body,
    redirect: 'manual',
  })
  await called(sent.headers.get('location'))
}

/** The program prints the page before it listens for what comes back. */
async function called(callback) {
  const deadline = performance.now() + SCENARIO_MS
  for (;;) {
    try {
      return await fetch(callback)
    } catch (thrown) {
      if (thrown.cause?.code !== 'ECONNREFUSED' || performance.now() > deadline) throw thrown
      await sleep(50)
    }
  }
}

async function freePort() {
  const server = createServer()
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  return port
}

/** The checks of all scenarios whose results stand below a folder. */
async function checksIn(folder) {
  const names = await readdir(folder, { recursive: true })
  const files = names.filter(name => name.endsWith('checks.json'))
  const lists = await Promise.all(files.map(async name => JSON.parse(await readFile(join(folder, name), 'utf8'))))
  return lists.flat()
}

/** Adds the key that the suite cannot send, and leaves foreign names of hosts and origins as they are. */
function startProxy({ host, hostname, port }, authorization) {
  const server = createServer((req, res) => {
    const own = `127.0.0.1:${server.address().port}`
    const renamed = text => text?.replace(own, host).replace(`localhost:${server.address().port}`, host)
    const headers = { ...req.headers, host: renamed(req.headers.host), authorization }
    if (headers.origin) headers.origin = renamed(headers.origin)
    const onward = request({ hostname, port, path: req.url, method: req.method, headers }, answer => {
      res.writeHead(answer.statusCode, answer.headers)
      answer.pipe(res)
    })
    onward.once('error', () => res.destroy())
    res.once('close', () => onward.destroy())
    req.pipe(onward)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', () => resolve(server))
  })
}

/** `see` gets what it has written so far. Resolves with all of it; rejects with that when it fails or takes longer than `ms`. */
function run(command, args, ms, env = process.env, see = () => {}) {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: ms })
  let text = ''
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', piece => {
      text += piece
      see(text)
    })
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) =>
      code === 0 ? resolve(text) : reject(new Error(`${code ?? signal}: ${text}`)),
    )
  })
}
