/**
 * The floor with the gateway's ledger around it and nothing else: `node ledger.mjs UPSTREAM FOLDER`. No key is looked up,
 * nothing is checked, routed, translated or counted, and nothing of the answer is changed. Only whole answers. What a
 * gateway with this ledger costs at least. Sends `{ url }` to its parent.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { Pool } from 'undici'
import { listen } from './listen.mjs'

const [upstream, folder] = process.argv.slice(2)
const root = fileURLToPath(new URL('../..', import.meta.url))
/** Beside the gateway's own bundle, where the driver of SQLite is found. */
const bundle = join(root, 'dist/bench-stores.mjs')
const LIFETIME_MS = 900_000
/** In nano-USD, as the gateway holds and charges for such a request. */
const [HELD, COST] = [4_096_000n, 438_000n]

await build({
  entryPoints: [join(root, 'src/stores/sqlite/index.ts')],
  outfile: bundle,
  bundle: true,
  format: 'esm',
  platform: 'node',
  external: ['ajv', 'better-sqlite3', 'better-sqlite3-napi'],
  banner: {
    js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
  },
})
const { openSqlite } = await import(pathToFileURL(bundle).href)
const stores = openSqlite(join(folder, 'gateway.db'))
const { key } = await stores.accounts.bootstrap()
const principal = await stores.keys.find(createHash('sha256').update(key).digest('hex'))
const { orgId, projectId, keyId } = principal
const named = { endpoint: 'chat', requestedModel: 'bench', model: 'bench', provider: 'bench' }
const told = { status: 200, outcome: 'ok', errorCode: null, streamed: false, cached: false, attempts: 1, source: null }
const priced = { estimated: false, cost: COST, storage: 0n, discount: 0, tier: null }

const pool = new Pool(upstream, { connections: 8192, pipelining: 1 })
let count = 0

async function serve(req, res, given) {
  try {
    const at = Date.now()
    const id = `${at.toString(36)}${String(++count).padStart(12, '0')}`
    const request = { id, requestId: id, ...named }
    const expiresAt = at + LIFETIME_MS
    const hold = await stores.ledger.hold({ id: `${id}:0`, request, principal, amount: HELD, expiresAt })
    const { statusCode, headers, body } = await pool.request({
      method: 'POST',
      path: req.url,
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-bench' },
      body: JSON.stringify(JSON.parse(given.toString())),
    })
    const answer = await body.text()
    const { usage } = JSON.parse(answer)
    await stores.ledger.settle(hold, {
      ...{ ...request, at, orgId, projectId, keyId, ...told, ...priced },
      ...{ durationMs: Date.now() - at, ttftMs: null },
      usage: { prompt: usage.prompt_tokens, completion: usage.completion_tokens },
    })
    res.writeHead(statusCode, { 'content-type': headers['content-type'], 'content-length': Buffer.byteLength(answer) })
    res.end(answer)
  } catch (error) {
    if (!res.headersSent) res.writeHead(502, { 'content-type': 'text/plain' })
    res.end(String(error?.stack))
  }
}

listen(serve)
