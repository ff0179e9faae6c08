/** CPU time and latency of several targets under one load, taken in turn. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, pace, saturate } from './driver.mjs'
import { shotOf } from './loads.mjs'
import { cpuMs } from './processes.mjs'
import { difference, median, percentile, ratio } from './stats.mjs'

/** A run goes back and forth between the targets so often, lest the machine's moods hit one of them only. */
const SLICES = 10
const PACED_SLICES = 4
/**
 * Served before anything is measured: V8 optimizes what runs often, and does so for thousands of requests, in threads
 * whose time would count. What a process costs in its first seconds is not what it costs.
 */
const WARM_SLICES = 40
/** What a target still does after its last answer belongs to the slice. */
const REST_MS = 10

/**
 * Runs a load on every target that serves it, `runs` times. The first target is what the others are compared with.
 * Resolves with one row per target.
 * @param {import('./loads.mjs').Load} load
 * @param {import('./driver.mjs').Target[]} targets
 */
export async function measureLoad(load, targets, { runs, scale, latency = true }) {
  const slice = Math.max(load.concurrency, Math.ceil(load.slice * scale))
  const paced = Math.ceil((load.rate * load.seconds * scale) / PACED_SLICES)
  const probes = targets.filter(({ models }) => models[load.wire]).map(target => new Probe(load, target))
  try {
    for (const probe of probes) await probe.send(slice * WARM_SLICES)
    for (let run = 0; run < runs; run++) {
      for (let at = 0; at < SLICES; at++) for (const probe of inTurn(probes, at)) await probe.saturate(slice)
      if (!latency || paced === 0) continue
      for (const probe of probes) probe.beginPaced()
      for (let at = 0; at < PACED_SLICES; at++) for (const probe of inTurn(probes, at)) await probe.pace(paced)
    }
  } catch (cause) {
    throw new Error(`${load.name}: ${cause.message}`, { cause })
  } finally {
    await Promise.all(probes.map(probe => probe.close()))
  }
  return probes.map(probe => probe.row(probes[0]))
}

/** Forwards and backwards by turns, so that nobody always comes first. */
const inTurn = (probes, at) => (at % 2 === 0 ? probes : probes.toReversed())

/** One target under one load, and what has been measured of it. */
class Probe {
  /** CPU time per request of each slice, in microseconds; none when the target's process is not known. */
  cpuUs = []
  /** Of each run. @type {import('./driver.mjs').Latency[][]} */
  latencies = []
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

  send(count) {
    return saturate(this.#client, this.#shot, { count, concurrency: this.#load.concurrency })
  }

  async saturate(count) {
    const { pid } = this.#target
    const before = pid && cpuMs(pid)
    await this.send(count)
    await sleep(REST_MS)
    if (pid) this.cpuUs.push(((cpuMs(pid) - before) * 1000) / count)
  }

  beginPaced() {
    this.latencies.push([])
  }

  async pace(count) {
    this.latencies.at(-1).push(...(await pace(this.#client, this.#shot, { count, rate: this.#load.rate })))
  }

  /** With what it costs over `base`, unless that is itself. */
  row(base) {
    const compared = base !== this && this.cpuUs.length > 0 && base.cpuUs.length > 0
    const over = name => (base === this ? null : this.#latencyOver(base, name))
    return {
      target: this.#target.name,
      cpuUs: this.cpuUs.length > 0 ? median(this.cpuUs) : null,
      cpuUsSlices: this.cpuUs,
      ratio: compared ? ratio(this.cpuUs, base.cpuUs) : null,
      addedCpuUs: compared ? difference(this.cpuUs, base.cpuUs) : null,
      totalMs: this.#latency('totalMs'),
      addedMs: over('totalMs'),
      firstMs: this.#load.stream ? this.#latency('firstMs') : null,
      addedFirstMs: this.#load.stream ? over('firstMs') : null,
    }
  }

  close() {
    return this.#client.close()
  }

  /** The medians of the runs' quantiles: a moment in which the machine stood still spoils one run only. */
  #latency(name) {
    const of = p => median(this.quantiles(name, p))
    return this.latencies.length > 0 ? { p50: of(0.5), p99: of(0.99) } : null
  }

  #latencyOver(base, name) {
    const of = p => difference(this.quantiles(name, p), base.quantiles(name, p)).median
    return this.latencies.length > 0 ? { p50: of(0.5), p99: of(0.99) } : null
  }

  /** One of each run. */
  quantiles(name, p) {
    return this.latencies.map(run =>
      percentile(
        run.map(latency => latency[name]),
        p,
      ),
    )
  }
}
