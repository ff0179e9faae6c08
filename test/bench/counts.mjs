/** What one request makes the gateway do, as counts that hardly depend on the machine and what else runs on it. */
import { createRequire } from 'node:module'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client, saturate } from './driver.mjs'
import { configure, mapValues, startGateway } from './gateway.mjs'
import { shotOf } from './loads.mjs'
import { BURST, STEPPED } from './sample.mjs'

const counter = fileURLToPath(new URL('count.cjs', import.meta.url))
const { resolve } = createRequire(import.meta.url)
const sqlite = driver()

/** The one that the gateway takes: see `src/stores/sqlite/driver.ts`. */
function driver() {
  try {
    return resolve('better-sqlite3-napi')
  } catch {
    return resolve('better-sqlite3')
  }
}

/** When the chunks of a stream come is up to the machine, and with it how many of them share a write: not so here. */
const cases = [
  { name: 'unary', wire: 'chat', requests: 150 },
  { name: 'stream, chunk by chunk', wire: 'chat', requests: 25, stream: true, prompt: STEPPED },
  { name: 'stream, in one piece', wire: 'chat', requests: 75, stream: true, prompt: BURST },
  { name: 'Anthropic stream, chunk by chunk', wire: 'messages', requests: 25, stream: true, prompt: STEPPED },
]
/** Of the requests that are counted, so many come before. */
const WARM_UP = 3

/** What the gateway does during `work`, and how long that takes. */
async function counted(gateway, work) {
  await gateway.ask('begin')
  const from = performance.now()
  await work()
  const ms = performance.now() - from
  return { sample: await gateway.ask('end'), ms }
}

/**
 * One request at a time, so that none shares a transaction with another. Without the optimising compiler, which does
 * away with allocations from the moment on that it gets round to it. What it does in as much time without requests, as
 * its timers come, is subtracted: on a busy machine a request has more of it.
 * @returns {Promise<{ name: string, counts: Record<string, number> }[]>} per request
 */
export async function measureCounts(stage, upstream) {
  const config = await configure(stage, upstream.url)
  const gateway = await startGateway(stage, config, ['--require', counter, '--no-opt'], { BENCH_SQLITE: sqlite })
  const rows = []
  for (const { name, requests, ...load } of cases) {
    const client = new Client(gateway, 1)
    const onData = load.prompt === STEPPED ? () => upstream.tell('step') : undefined
    const shot = { ...shotOf(load, gateway), onData }
    const send = count => saturate(client, shot, { count, concurrency: 1 })
    await send(Math.ceil(requests * WARM_UP))
    const { sample, ms } = await counted(gateway, () => send(requests))
    const { sample: idle } = await counted(gateway, () => setTimeout(ms))
    await client.close()
    rows.push({ name, counts: mapValues(sample, (count, what) => Math.max(0, count - idle[what]) / requests) })
  }
  await gateway.stop()
  return rows
}
