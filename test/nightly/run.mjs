/**
 * `npm run test:nightly [-- FILE…]`: the checks that are too long for every change, one file after another, and a table
 * of what they measured. What has a short form in `npm test` is that very file, with more runs. Without files, then the
 * whole suite on the other versions of Node.
 */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { table } from './table.mjs'
import { passesOn } from './versions.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const FILE_SECONDS = 3 * 3600
/** Beside the oldest one that is supported, which everything else here runs on. */
const VERSIONS = ['22', '24']

/** Short forms, and what makes them long. What the environment says already stands. */
const long = {
  'test/stores/money-model.test.ts': { MONEY_RUNS: '5000' },
  'test/e2e/crash.test.ts': { CRASH_ROUNDS: '50' },
  'test/stores/postgres-storm.test.ts': {},
  'test/stores/spending.test.ts': { SPENDING_RUNS: '1000' },
  // Their loops have a tenth of their length in `npm test`: see test/helpers/runs.ts.
  'test/codecs': {},
  'test/core': {},
  'test/filters': {},
  'test/plugins': {},
  'test/jobs': {},
  'test/policy': {},
  'test/upstream': {},
  'test/e2e/limits.test.ts': {},
  'test/e2e/prefixes.test.ts': {},
  'test/e2e/malformed.test.ts': { MALFORMED_CASES: '10000' },
  'test/e2e/timeouts.test.ts': {},
  'test/e2e/shutdown.test.ts': {},
  'test/e2e/routing.test.ts': { OUTAGE_REQUESTS: '5000' },
  // What these measure in seconds is asserted here alone.
  'test/bench/counts.test.ts': {},
  'test/e2e/edge.test.ts': {},
  'test/e2e/health.test.ts': {},
  'test/e2e/hostile.test.ts': {},
  'test/e2e/mcp.test.ts': {},
  'test/e2e/mcp-usage.test.ts': {},
  'test/e2e/money-limits.test.ts': {},
  'test/e2e/nodes.test.ts': {},
  'test/e2e/nodes-operations.test.ts': {},
  'test/e2e/nodes-postgres.test.ts': {},
  'test/e2e/nodes-shared.test.ts': {},
  'test/e2e/nodes-kills.test.ts': { NODE_KILLS: '100' },
  'test/e2e/overload.test.ts': {},
  'test/e2e/plugins.test.ts': {},
  'test/e2e/protocol.test.ts': {},
  // With litellm.
  'test/e2e/python.test.ts': {},
  'test/e2e/rate-limits.test.ts': {},
  'test/e2e/reconfigure.test.ts': {},
  'test/e2e/reload.test.ts': {},
  'test/e2e/scale.test.ts': {},
  'test/e2e/slow-and-partial.test.ts': {},
  'test/e2e/spending-mix.test.ts': {},
  'test/e2e/storage.test.ts': {},
  'test/e2e/stream-faults.test.ts': {},
  'test/e2e/upstream-edges.test.ts': {},
  'test/e2e/upstream-faults.test.ts': {},
  // Fifty kills, and 200 jobs of two processes.
  'test/e2e/video-kills.test.ts': {},
  'test/e2e/workers.test.ts': {},
}
const own = readdirSync(join(root, 'test/nightly'))
  .filter(name => name.endsWith('.nightly.ts'))
  .map(name => `test/nightly/${name}`)

if (!existsSync(join(root, 'dist/src/main.js'))) throw new Error('The gateway is not built: run `npm run build` first.')
const given = process.argv.slice(2)
const files = given.length > 0 ? given : [...Object.keys(long), ...own]
const folder = await mkdtemp(join(tmpdir(), 'nightly-'))
const figures = join(folder, 'figures.jsonl')
const env = { ...Object.assign({}, ...Object.values(long)), ...process.env, NIGHTLY_FIGURES: figures }
const args = ['test/run.mjs', '--jobs=1', `--timeout=${FILE_SECONDS}`, ...files]
const tests = spawn(process.execPath, args, { cwd: root, env, stdio: 'inherit' })
const code = await new Promise(resolve => tests.once('close', code => resolve(code ?? 1)))
const text = existsSync(figures) ? await readFile(figures, 'utf8') : ''
await rm(folder, { recursive: true })
console.log(
  table(
    text
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line)),
  ),
)
process.exitCode = code

for (const version of given.length > 0 ? [] : VERSIONS) {
  const passed = await passesOn(version)
  console.log(`the suite on Node ${version}: ${passed ? 'passed' : 'FAILED'}`)
  if (!passed) process.exitCode = 1
}
