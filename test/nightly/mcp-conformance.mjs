/**
 * `node test/nightly/mcp-conformance.mjs`: the official conformance suite of MCP against the built gateway, on the version
 * of Node that it needs, which npm's package `node` brings. Ends with 1 when a scenario fails that applies to this server.
 */
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { delimiter, join } from 'node:path'
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
  console.log(failures === 0 ? 'MCP conformance holds' : `MCP conformance: ${failures} scenarios failed`)
  process.exitCode = failures === 0 ? 0 : 1
} catch (thrown) {
  console.error(thrown, stage.complaints())
  process.exitCode = 1
} finally {
  proxy?.close().closeAllConnections()
  await stage.close()
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

/** Resolves with what it wrote; rejects with that when it fails or takes longer than `ms`. */
function run(command, args, ms, env = process.env) {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'], timeout: ms })
  let text = ''
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', piece => {
      text += piece
    })
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) =>
      code === 0 ? resolve(text) : reject(new Error(`${code ?? signal}: ${text}`)),
    )
  })
}
