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
 * @property {number} rate requests per second of a run's paced part
 * @property {boolean} [stream]
 * @property {number} [prompt] its size in bytes
 */

/** @type {Load[]} */
export const loads = [
  { name: 'unary', group: 'unary', count: 4000, concurrency: 32, rate: 500 },
  { name: 'stream of 64', group: 'stream', count: 400, concurrency: 32, rate: 100, stream: true },
  { name: 'unary, 100 kB prompt', group: 'large', count: 300, concurrency: 8, rate: 50, prompt: 100_000 },
  { name: 'unary, 1 MB prompt', group: 'large', count: 40, concurrency: 4, rate: 10, prompt: 1_000_000 },
]

/** A run goes back and forth between the targets so often, lest the machine's moods hit one of them only. */
const SLICES = 5
const PACED_SECONDS = 0.6
const STREAMS = 1000
const SETTLE_MS = 500

/** What a load sends to a target. @returns {import('./driver.mjs').Shot} */
export const shotOf = ({ stream, prompt }, { model }) => ({
  body: request({ model, stream, prompt }),
  check: stream ? checkStream : checkWhole,
})

/** Runs a load on every target in turn, `runs` times. Resolves with one row per target. */
export async function measureLoad(load, targets, { runs, scale }) {
  const slice = Math.ceil((load.count * scale) / SLICES)
  const paced = Math.ceil(load.rate * PACED_SECONDS * scale)
  const probes = targets.map(target => new Probe(load, target))
  try {
    for (const probe of probes) await probe.saturate((slice * SLICES) / 2)
    for (let run = 0; run < runs; run++) {
      const used = probes.map(() => 0)
      for (let step = 0; step < SLICES; step++) {
        for (const [at, probe] of probes.entries()) used[at] += await probe.saturate(slice)
      }
      for (const [at, probe] of probes.entries()) {
        probe.cpuUs.push((used[at] * 1000) / (slice * SLICES))
        await probe.pace(paced)
      }
    }
  } catch (cause) {
    throw new Error(`${load.name}: ${cause.message}`, { cause })
  } finally {
    await Promise.all(probes.map(probe => probe.close()))
  }
  return probes.map(probe => probe.row())
}

/** One target under one load, and what has been measured of it. */
class Probe {
  /** CPU time per request of each run; NaN when the target's process is not known. */
  cpuUs = []
  #latencies = []
  #load
  #target
  #client
  #shot

  constructor(load, target) {
    this.#load = load
    this.#target = target
    this.#client = new Client(target, load.concurrency)
    this.#shot = shotOf(load, target)
  }

  /** Resolves with the CPU time in milliseconds that the target used meanwhile. */
  async saturate(count) {
    const { pid } = this.#target
    const before = pid ? cpuMs(pid) : Number.NaN
    await saturate(this.#client, this.#shot, { count, concurrency: this.#load.concurrency })
    return pid ? cpuMs(pid) - before : Number.NaN
  }

  async pace(count) {
    this.#latencies.push(...(await pace(this.#client, this.#shot, { count, rate: this.#load.rate })))
  }

  row() {
    const of = name => quantiles(this.#latencies.map(latency => latency[name]))
    return {
      target: this.#target.name,
      cpuUs: this.#target.pid ? median(this.cpuUs) : null,
      cpuUsRuns: this.#target.pid ? this.cpuUs : null,
      totalMs: of('totalMs'),
      firstMs: this.#load.stream ? of('firstMs') : null,
    }
  }

  close() {
    return this.#client.close()
  }
}

const quantiles = values => ({ p50: percentile(values, 0.5), p99: percentile(values, 0.99) })

/** Resident memory of a process that has served nothing yet, then of each of 1,000 streams that it holds open. */
export async function measureMemory(target) {
  await sleep(SETTLE_MS)
  const idleBytes = rss(target.pid)
  const client = new Client(target, STREAMS)
  try {
    const open = await client.hold(request({ model: target.model, stream: true, prompt: HOLD }), STREAMS)
    await sleep(SETTLE_MS)
    const streamBytes = (rss(target.pid) - idleBytes) / STREAMS
    if (open() < STREAMS) throw new Error(`memory of ${target.name}: ${STREAMS - open()} held streams were lost`)
    return { target: target.name, idleBytes, streams: STREAMS, streamBytes }
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
