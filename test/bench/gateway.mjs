/** Starts the built gateway on the shipped configuration, with ports and stores of its own. */
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'

export const root = fileURLToPath(new URL('../..', import.meta.url))
const command = join(root, 'bin/gateway.js')
const UNLIMITED = 100_000_000
const MODEL = 'bench'

/**
 * A folder with a copy of the shipped configuration: all filters, all models, all providers. With `upstream`, one
 * more provider with one priced model, so that the ledger really charges, and no rate limit that the load could reach.
 * @param {import('./processes.mjs').Stage} stage
 * @returns {Promise<string>} the path of `gateway.yaml`
 */
export async function configure(stage, upstream) {
  const folder = await stage.folder()
  await cp(join(root, 'config'), join(folder, 'config'), { recursive: true })
  await cp(join(root, 'providers.d'), join(folder, 'providers.d'), { recursive: true })
  await mkdir(join(folder, 'data'))
  const path = join(folder, 'config/gateway.yaml')
  const settings = parse(await readFile(path, 'utf8'))
  const own = {
    server: { listen: '127.0.0.1:0', admin: '127.0.0.1:0', drain: '1s' },
    stores: { sqlite: '../data/gateway.db' },
  }
  await writeFile(path, stringify({ ...(upstream ? withoutLimit(settings) : settings), ...own }))
  if (upstream) {
    await writeFile(join(folder, 'providers.d/bench.yaml'), stringify(provider(upstream)))
    await writeFile(join(folder, 'config/models.d/bench.yaml'), stringify({ models: [model] }))
  }
  return path
}

/** Starts the gateway and resolves when it is ready. `nodeArgs` stand before the script. */
export async function startGateway(stage, config, nodeArgs = []) {
  if (!existsSync(join(root, 'dist/src/main.js')))
    throw new Error('The gateway is not built: run `npm run build` first.')
  const { listen, key, pid, stop } = await stage.start([...nodeArgs, command, '--config', config], {
    env: { HOME: config, GATEWAY_READY_FD: '3' },
    via: 'fd',
  })
  const headers = { authorization: `Bearer ${key}` }
  return { name: 'gateway', url: `http://${listen}`, model: MODEL, headers, pid, stop }
}

/** The settings with the rate limit out of reach, wherever a chain or an endpoint sets it; the filter still counts. */
function withoutLimit(settings) {
  const raise = filters =>
    'ratelimit' in filters ? { ...filters, ratelimit: { ...filters.ratelimit, rpm: UNLIMITED } } : filters
  const chains = mapValues(settings.chains, chain => chain.map(row => (typeof row === 'string' ? row : raise(row))))
  return { ...settings, chains, endpoints: mapValues(settings.endpoints ?? {}, raise) }
}

const mapValues = (map, change) => Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value)]))

const provider = upstream => ({
  provider: 'bench',
  name: 'Bench',
  base_url: `${upstream}/v1`,
  // Below the streams that are held open at once, a provider's limit would be what is measured.
  concurrency: 100_000,
  auth: { scheme: 'bearer', secret: 'sk-bench' },
  wires: { chat: 'openai.chat' },
  models: [{ model: MODEL, id: 'bench-1', pricing: { prompt: '1.00', completion: '2.00' }, supports: ['streaming'] }],
})

const model = {
  id: MODEL,
  name: 'Bench',
  family: 'bench',
  input: ['text'],
  output: ['text'],
  context_length: 1_000_000,
  max_output: 4096,
  stability: 'stable',
}
