/** What tracing costs: the gateway with every request traced and metrics sent, beside one without telemetry. */
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { configure, startGateway } from './gateway.mjs'
import { measureLoad } from './measure.mjs'

const collector = fileURLToPath(new URL('collector.mjs', import.meta.url))

/** CPU time alone; the first row is that of the gateway without telemetry. */
export async function measureTracing(stage, upstream, load, effort) {
  const { url, stop } = await stage.start([collector])
  const plain = await startGateway(stage, await configure(stage, upstream))
  const traced = await startGateway(stage, await tracing(stage, upstream, url))
  const rows = await measureLoad(load, [plain, { ...traced, name: 'traced' }], { ...effort, latency: false })
  await Promise.all([plain.stop(), traced.stop()])
  await stop()
  return rows
}

/** The shipped configuration with a collector. */
export async function tracing(stage, upstream, endpoint) {
  const path = await configure(stage, upstream)
  const settings = parse(await readFile(path, 'utf8'))
  await writeFile(path, stringify({ ...settings, telemetry: { otlp: { endpoint } } }))
  return path
}
