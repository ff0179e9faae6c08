/** What is measured beside loads: memory and lag under open streams, small requests beside large ones, the start. */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, pace, saturate } from './driver.mjs'
import { configure, startGateway } from './gateway.mjs'
import { loads, shotOf } from './loads.mjs'
import { rss } from './processes.mjs'
import { SLOW } from './sample.mjs'
import { median, percentile } from './stats.mjs'

const STREAMS = 5_000
/**
 * Served before they are opened. A process grows by some 40 MB with its first work, once: code that is compiled, room for new objects.
 * Shared among the streams that happen to be open it would count as theirs.
 */
const SERVED = 1_000
const SETTLE_MS = 500
/** After work, until garbage is collected and helpers rest. */
const REST_MS = 2_000
/** How long the event loop is watched while the streams are open. */
const WATCH_MS = 6_000

/**
 * Resident memory of a process that has served nothing yet, then that of the same process after some work, and of each
 * of 5,000 slow streams that it holds open: over the latter (`streamBytes`), and over the former (`firstStreamBytes`). And
 * how late its event loop runs meanwhile, as its own metrics tell; null for a target without those.
 */
export async function measureStreams(target, { scale }) {
  await sleep(SETTLE_MS)
  const streams = STREAMS * scale
  const idleBytes = rss(target.pid)
  await serve(target, SERVED)
  await sleep(REST_MS)
  const servedBytes = rss(target.pid)
  const client = new Client(target, streams)
  try {
    const open = await client.hold(shotOf({ wire: 'chat', stream: true, prompt: SLOW }, target), streams)
    await sleep(SETTLE_MS)
    // The quantiles are of the time since they were last asked for: what opening cost is not looked at here.
    await target.metrics?.()
    await sleep(WATCH_MS)
    const lagP99Ms = target.metrics ? lagOf(await target.metrics()) : null
    const bytes = rss(target.pid)
    if (open() < streams) throw new Error(`${target.name}: ${streams - open()} open streams were lost`)
    const [streamBytes, firstStreamBytes] = [(bytes - servedBytes) / streams, (bytes - idleBytes) / streams]
    return { target: target.name, idleBytes, servedBytes, streams, streamBytes, firstStreamBytes, lagP99Ms }
  } finally {
    await client.close()
  }
}

async function serve(target, count) {
  const load = loads.find(({ name }) => name === 'stream of 64')
  const client = new Client(target, load.concurrency)
  try {
    await saturate(client, shotOf(load, target), { count, concurrency: load.concurrency })
  } finally {
    await client.close()
  }
}

function lagOf(metrics) {
  const found = /^gateway_event_loop_lag_seconds\{quantile="0\.99"\} (\S+)$/m.exec(metrics)
  if (!found) throw new Error('the metrics of the gateway do not tell the lag of the event loop')
  return Number(found[1]) * 1000
}

const small = { ...loads.find(({ name }) => name === 'unary'), rate: 100, seconds: 3 }
const large = loads.find(({ name }) => name === '1 MB prompt')

/** Latency of small requests while large ones are sent, one after the other; the median of the runs' quantiles. */
export async function measureBeside(targets, { runs, scale }) {
  const latencies = new Map(targets.map(target => [target, []]))
  for (let run = 0; run < runs; run++) {
    for (const target of targets) latencies.get(target).push(await beside(target, small.rate * small.seconds * scale))
  }
  return targets.map(target => {
    const of = p => median(latencies.get(target).map(run => percentile(run, p)))
    return { target: target.name, p50Ms: of(0.5), p99Ms: of(0.99) }
  })
}

/** Milliseconds of each of `count` small requests. */
async function beside(target, count) {
  const client = new Client(target, small.concurrency)
  const background = new Client(target, 1)
  try {
    const shot = shotOf(large, target)
    await background.shoot(shot)
    let going = true
    const send = async () => {
      while (going) await background.shoot(shot)
    }
    const measured = pace(client, shotOf(small, target), { count, rate: small.rate }).finally(() => {
      going = false
    })
    const [answers] = await Promise.all([measured, send()])
    return answers.map(({ totalMs }) => totalMs)
  } finally {
    await Promise.all([client.close(), background.close()])
  }
}

/** Milliseconds from spawning the gateway, on an empty store and the shipped catalogue, to the first 200 of `GET /`. */
export async function measureStart(stage, { runs }) {
  const times = []
  for (let run = 0; run < runs; run++) {
    const config = await configure(stage)
    const start = performance.now()
    const { url, stop } = await startGateway(stage, config)
    const { status } = await fetch(url)
    times.push(performance.now() - start)
    await stop()
    if (status !== 200) throw new Error(`start: GET / answered ${status}`)
  }
  return { medianMs: median(times), runsMs: times }
}
