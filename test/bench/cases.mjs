/** What is measured: CPU time and latency under load, memory, and the time to start. */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, pace, saturate } from './driver.mjs'
import { configure, startGateway } from './gateway.mjs'
import { cpuMs, rss } from './processes.mjs'
import { checkStream, checkWhole, HOLD, request } from './sample.mjs'
import { median, percentile } from './stats.mjs'

/**
 * @typedef {object} Load
 * @property {string} name
 * @property {string} group what `--only` takes
 * @property {number} count requests of one run under saturation
 * @property {number} concurrency
 * @property {number} rate requests per second of the paced part, which lasts a second
 * @property {boolean} [stream]
 * @property {number} [prompt] its size in bytes
 */

/** @type {Load[]} */
export const loads = [
  { name: 'unary', group: 'unary', count: 4000, concurrency: 32, rate: 500 },
  { name: 'stream of 64', group: 'stream', count: 400, concurrency: 32, rate: 50, stream: true },
  { name: 'unary, 100 kB prompt', group: 'large', count: 300, concurrency: 8, rate: 50, prompt: 100_000 },
  { name: 'unary, 1 MB prompt', group: 'large', count: 40, concurrency: 4, rate: 10, prompt: 1_000_000 },
]

const STREAMS = 1000
const SETTLE_MS = 500

const shotOf = ({ stream, prompt }, { model }) => ({
  body: request({ model, stream, prompt }),
  check: stream ? checkStream : checkWhole,
})

/** Runs a load on every target in turn, `runs` times. Resolves with one row per target. */
export async function measureLoad(load, targets, { runs, scale }) {
  const count = Math.ceil(load.count * scale)
  const probes = targets.map(target => ({
    target,
    client: new Client(target, load.concurrency),
    shot: shotOf(load, target),
    cpu: [],
    latencies: [],
  }))
  try {
    for (const { client, shot } of probes) await saturate(client, shot, { ...load, count: Math.ceil(count / 2) })
    for (let run = 0; run < runs; run++) {
      for (const { target, client, shot, cpu, latencies } of probes) {
        const before = target.pid && cpuMs(target.pid)
        await saturate(client, shot, { ...load, count })
        if (target.pid) cpu.push(((cpuMs(target.pid) - before) * 1000) / count)
        latencies.push(...(await pace(client, shot, { ...load, count: Math.ceil(load.rate * scale) })))
      }
    }
  } catch (cause) {
    throw new Error(`${load.name}: ${cause.message}`, { cause })
  } finally {
    await Promise.all(probes.map(({ client }) => client.close()))
  }
  return probes.map(({ target, cpu, latencies }) => ({
    target: target.name,
    cpuUs: cpu.length > 0 ? median(cpu) : null,
    cpuUsRuns: cpu,
    totalMs: quantiles(latencies.map(({ totalMs }) => totalMs)),
    firstMs: load.stream ? quantiles(latencies.map(({ firstMs }) => firstMs)) : null,
  }))
}

const quantiles = values => ({ p50: percentile(values, 0.5), p99: percentile(values, 0.99) })

/** Resident memory of a process that has served nothing yet, then of each of 1,000 streams that it holds open. */
export async function measureMemory(target, { scale }) {
  await sleep(SETTLE_MS)
  const idleBytes = rss(target.pid)
  const streams = Math.ceil(STREAMS * scale)
  const client = new Client(target, streams)
  try {
    await client.hold(request({ model: target.model, stream: true, prompt: HOLD }), streams)
    await sleep(SETTLE_MS)
    return { target: target.name, idleBytes, streams, streamBytes: (rss(target.pid) - idleBytes) / streams }
  } finally {
    await client.close()
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
