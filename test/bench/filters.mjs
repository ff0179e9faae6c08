/** What each filter of the chain costs: the gateway with it, beside the gateway without it. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { configure, filterNames, root, startGateway } from './gateway.mjs'
import { measureLoad } from './measure.mjs'
import { profileFilters } from './profile.mjs'

/**
 * Filters that others need something of cannot be switched off; for them, and to compare with, stands their share of a
 * profile of the whole chain.
 * @returns {Promise<{ filter: string, needed: string | null, addedCpuUs: object | null, profiledUs: number }[]>} per request
 */
export async function measureFilters(stage, upstream, load, effort) {
  const filters = await filterNames()
  const profiled = await profileFilters(stage, load, await configure(stage, upstream), filters, effort)
  const rows = []
  for (const filter of filters) {
    const config = await configure(stage, upstream, { without: [filter] })
    const needed = await refusal(config)
    const addedCpuUs =
      needed === null ? await difference(stage, [config, await configure(stage, upstream)], load, effort) : null
    rows.push({ filter, needed, addedCpuUs, profiledUs: profiled.get(filter) ?? 0 })
  }
  return rows
}

/** What the second configuration costs over the first; of processes that are equally old, so equally warm. */
async function difference(stage, configs, load, effort) {
  const gateways = await Promise.all(configs.map(config => startGateway(stage, config)))
  const [, { addedCpuUs }] = await measureLoad(load, gateways, { ...effort, latency: false })
  await Promise.all(gateways.map(({ stop }) => stop()))
  return addedCpuUs
}

/** Why the loader does not take a configuration; null when it does. */
function refusal(config) {
  const args = [join(root, 'bin/gatewayctl.js'), 'check', '--config', config]
  return new Promise(resolve => {
    execFile(process.execPath, args, { env: { PATH: process.env.PATH ?? '', HOME: config } }, (error, _, stderr) => {
      resolve(error ? (/needs "(\w+)"/.exec(stderr)?.[0] ?? stderr.trim()) : null)
    })
  })
}
