/** `npm run bench`: what the gateway costs, beside the least that a proxy on Node can cost. */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { verdicts } from './bounds.mjs'
import { measureBeside, measureStart, measureStreams } from './cases.mjs'
import { measureCounts } from './counts.mjs'
import { measureFilters } from './filters.mjs'
import { configure, models, startGateway } from './gateway.mjs'
import { loads } from './loads.mjs'
import { measureLoad } from './measure.mjs'
import { Stage } from './processes.mjs'
import { profileLoad } from './profile.mjs'
import { machine, render } from './report.mjs'
import { measureTracing } from './tracing.mjs'
import { measureWorkers } from './workers.mjs'

const usage = `usage: npm run bench -- [options]

  --only CASE      may be repeated: unary, stream, messages (a stream of Anthropic's wire), ai-sdk (a stream of parts), large (100 kB and 1 MB
                   prompts), embeddings (3 MB), media (an image, an upload, speech), mcp (a call of a tool), beside (small requests beside 1 MB ones), streams (5,000 open ones:
                   memory and event-loop lag), start, workers (what a second one brings), filters (what each costs;
                   only when named), tracing (CPU with every request traced, beside
                   without; only when named), counts (allocations, statements and writes per request; only when named)
  --runs N         alternating runs of each load (5); figures are medians
  --quick          one run with a quarter of the requests: a smoke test; the code has not warmed up
  --ledger         also the floor with the gateway's ledger and nothing else, for requests that are not streamed
  --prof           where the gateway's time goes under unary and streamed load, in place of measuring
  --top N          how many functions --prof shows (10)
  --target T       one more server to measure, running already:
                   name=url[#key=K&model=M&messages=M&embeddings=M&pid=P&header=name:value], may be repeated (url
                   without a path; \`messages\` names a model that it has of the provider's /v1/messages,
                   \`embeddings\` one of its /v1/embeddings; CPU and memory are told when the pid is)
  --upstream-port N  the port of the simulated provider, for targets that must know it beforehand
  --json           one JSON value on standard output
  --check          exit 1 when a bound is broken`

const CASES = [...new Set(loads.map(({ group }) => group)), 'beside', 'streams', 'start', 'workers']
const NAMED = ['filters', 'tracing', 'counts']
const QUICK = 0.25
const TOP = 10
const WORKERS = 2
/** Of a run. */
const WORKERS_SECONDS = 2
/** A bench that takes longer than this per run is stuck. */
const LIMIT_MS = 120_000

const script = name => fileURLToPath(new URL(name, import.meta.url))
const options = readOptions()
const stage = new Stage()
let leaving = false
const only = options.only ?? (options.prof ? ['unary', 'stream'] : CASES)
const runs = Number(options.runs ?? (options.quick ? 1 : 5))
const effort = { runs, scale: options.quick ? QUICK : 1 }

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => void leave(130))
}
setTimeout(
  () => {
    console.error('bench: it takes too long; it gives up')
    void leave(1)
  },
  LIMIT_MS * (runs + 1),
).unref()

try {
  const results = await (options.prof ? profile() : measure())
  console.log(options.json ? JSON.stringify(results, null, 2) : render(results))
  await leave(options.check && results.bounds.some(({ holds }) => !holds) ? 1 : 0)
} catch (error) {
  // Once the bench is ending, requests fail because their servers end.
  if (!leaving) console.error(`bench: ${error.message}\n${stage.complaints()}`)
  await leave(1)
}

async function measure() {
  const results = {}
  // First, while nothing else runs.
  if (only.includes('start')) results.start = await measured('start', () => measureStart(stage, effort))
  const simulated = await startUpstream()
  const { url: upstream } = simulated
  const named = options.target.map(readTarget)
  if (only.includes('counts')) results.counts = await measured('counts', () => measureCounts(stage, simulated))
  if (only.includes('streams')) {
    results.streams = []
    await withServers(upstream, named, async targets => {
      for (const target of targets.filter(({ pid }) => pid)) {
        results.streams.push(await measured(`streams of ${target.name}`, () => measureStreams(target, effort)))
      }
    })
  }
  const chosen = loads.filter(({ group }) => only.includes(group))
  if (chosen.length > 0) results.loads = []
  for (const load of chosen) {
    const rows = await measured(load.name, () =>
      withServers(upstream, named, async servers => {
        const isBeside = options.ledger && load.wire === 'chat' && !load.stream
        const targets = isBeside ? [...servers, await startLedger(upstream)] : servers
        return await measureLoad(load, targets, effort)
      }),
    )
    results.loads.push({ name: load.name, rows })
  }
  if (only.includes('beside')) {
    const measureIt = targets => measureBeside(targets, effort)
    results.beside = await measured('beside', () => withServers(upstream, named, measureIt))
  }
  if (only.includes('workers')) {
    const load = { workers: WORKERS, runs, seconds: WORKERS_SECONDS }
    results.workers = await measured('workers', () => measureWorkers(stage, load))
  }
  if (only.includes('tracing')) {
    const [load] = loads
    const rows = await measured('tracing', () => measureTracing(stage, upstream, load, effort))
    results.tracing = { load: load.name, rows }
  }
  if (only.includes('filters')) {
    const [load] = loads
    const rows = await measured('filters', () => measureFilters(stage, upstream, load, effort))
    results.filters = { load: load.name, rows }
  }
  return { ...results, bounds: verdicts(results), machine: machine() }
}

async function profile() {
  const { url: upstream } = await startUpstream()
  const profiles = []
  for (const load of loads.filter(({ group }) => only.includes(group))) {
    const config = await configure(stage, upstream)
    const functions = await measured(load.name, () => profileLoad(stage, load, config, effort))
    profiles.push({ name: load.name, functions: functions.slice(0, Number(options.top ?? TOP)) })
  }
  return { profiles, bounds: [], machine: machine() }
}

function startUpstream() {
  return stage.start([script('upstream.mjs'), options['upstream-port'] ?? '0'])
}

/** The floor, which comes first, and the gateway. */
async function startServers(upstream) {
  const floor = await stage.start([script('floor.mjs'), upstream])
  const gateway = await startGateway(stage, await configure(stage, upstream))
  return [{ name: 'floor', models, headers: {}, pipes: true, ...floor }, gateway]
}

async function startLedger(upstream) {
  const ledger = await stage.start([script('ledger.mjs'), upstream, await stage.folder()])
  return { name: 'floor and ledger', models, headers: {}, pipes: true, ...ledger }
}

/** Measures processes of their own: what one load leaves in their heaps is not another one's. */
async function withServers(upstream, named, measureIt) {
  const servers = await startServers(upstream)
  const results = await measureIt([...servers, ...named])
  await Promise.all(servers.map(({ stop }) => stop()))
  return results
}

/** Tells on standard error what is going on. */
async function measured(what, measureIt) {
  const start = Date.now()
  const result = await measureIt()
  console.error(`${what}: ${((Date.now() - start) / 1000).toFixed(1)} s`)
  return result
}

/** Reads `name=url#…`. @returns {import('./driver.mjs').Target} */
function readTarget(text) {
  const [, name, address] = /^([^=]+)=(https?:.+)$/.exec(text) ?? []
  if (!name) return refuse(`--target ${text}: expected name=url`)
  const { origin, hash } = new URL(address)
  const given = new URLSearchParams(hash.slice(1))
  const headers = Object.fromEntries(given.getAll('header').map(header => header.split(/:(.*)/s, 2)))
  if (given.has('key')) headers.authorization = `Bearer ${given.get('key')}`
  const pid = Number(given.get('pid')) || undefined
  const chat = given.get('model') ?? models.chat
  const others = { messages: given.get('messages') ?? undefined, embeddings: given.get('embeddings') ?? undefined }
  return { name, url: origin, models: { chat, ...others }, headers, pid }
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string', multiple: true },
        runs: { type: 'string' },
        quick: { type: 'boolean' },
        ledger: { type: 'boolean' },
        prof: { type: 'boolean' },
        top: { type: 'string' },
        target: { type: 'string', multiple: true, default: [] },
        'upstream-port': { type: 'string' },
        json: { type: 'boolean' },
        check: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    for (const name of values.only ?? [])
      if (![...CASES, ...NAMED].includes(name)) refuse(`--only ${name}: expected ${[...CASES, ...NAMED].join(', ')}`)
    for (const name of ['runs', 'top']) {
      if (values[name] !== undefined && !/^[1-9]\d*$/.test(values[name])) refuse(`--${name} takes a positive number`)
    }
    return values
  } catch (error) {
    return refuse(error.message)
  }
}

function refuse(why) {
  console.error(`bench: ${why}\n\n${usage}`)
  process.exit(2)
}

/** Ends every process and removes every folder that the bench made, then itself; the first code given counts. */
async function leave(code) {
  if (leaving) return
  leaving = true
  await stage.close()
  process.exit(code)
}
