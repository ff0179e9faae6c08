/** Starts the built gateway on the shipped configuration, with ports and stores of its own. */
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'

export const root = fileURLToPath(new URL('../..', import.meta.url))
const command = join(root, 'bin/gateway.js')
/** No limit of the shipped configuration may be what is measured. */
const UNLIMITED = 100_000_000

/** By the wire of their provider. */
export const models = {
  chat: 'bench',
  /** It is named by a header. */
  aiSdk: 'bench',
  messages: 'bench-messages',
  embeddings: 'bench-embeddings',
  images: 'bench-images',
  speech: 'bench-speech',
  transcriptions: 'bench-transcriptions',
  /** Its tool calls no model; the floor answers a chat request in its place. */
  mcp: 'bench',
}

/**
 * A folder with a copy of the shipped configuration: all filters but those in `without`, all models, all providers.
 * With `upstream`, one more provider for each wire, with one priced model, so that the ledger really charges, and no
 * limit that the load could reach.
 * @param {import('./processes.mjs').Stage} stage
 * @param {string} [upstream]
 * @param {{ without?: readonly string[] }} [options]
 * @returns {Promise<string>} the path of `gateway.yaml`
 */
export async function configure(stage, upstream, { without = [] } = {}) {
  const folder = await stage.folder()
  await cp(join(root, 'config'), join(folder, 'config'), { recursive: true })
  await cp(join(root, 'providers.d'), join(folder, 'providers.d'), { recursive: true })
  await mkdir(join(folder, 'data'))
  const path = join(folder, 'config/gateway.yaml')
  const settings = withoutFilters(parse(await readFile(path, 'utf8')), without)
  const own = {
    server: { listen: '127.0.0.1:0', admin: '127.0.0.1:0', drain: '1s' },
    stores: { sqlite: '../data/gateway.db' },
  }
  await writeFile(path, stringify({ ...(upstream ? withoutLimits(settings) : settings), ...own }))
  if (upstream) {
    for (const manifest of manifests(upstream)) {
      await writeFile(join(folder, `providers.d/${manifest.provider}.yaml`), stringify(manifest))
    }
    await writeFile(
      join(folder, 'config/models.d/bench.yaml'),
      stringify({ models: [...new Set(Object.values(models))].map(model) }),
    )
  }
  return path
}

/** The filters of the chain that inference runs through, as the shipped configuration names them. */
export async function filterNames() {
  const { chains } = parse(await readFile(join(root, 'config/gateway.yaml'), 'utf8'))
  return chains.inference.map(nameOf)
}

/** Starts the gateway and resolves when it is ready. `nodeArgs` stand before the script. */
export async function startGateway(stage, config, nodeArgs = [], env = {}) {
  if (!existsSync(join(root, 'dist/src/main.js')))
    throw new Error('The gateway is not built: run `npm run build` first.')
  const { listen, admin, key, ...child } = await stage.start([...nodeArgs, command, '--config', config], {
    env: { HOME: config, GATEWAY_READY_FD: '3', ...env },
    via: 'fd',
  })
  const headers = { authorization: `Bearer ${key}` }
  const token = join(dirname(config), '../data/admin.token')
  const metrics = async () => {
    const authorization = `Bearer ${(await readFile(token, 'utf8')).trim()}`
    return (await fetch(`http://${admin}/metrics`, { headers: { authorization } })).text()
  }
  return { name: 'gateway', url: `http://${listen}`, models, headers, metrics, ...child }
}

const nameOf = row => (typeof row === 'string' ? row : Object.keys(row)[0])
export const mapValues = (map, change) =>
  Object.fromEntries(Object.entries(map).map(([name, value]) => [name, change(value, name)]))

/** The settings with the options of filters as `change` makes them, wherever a chain or an endpoint sets them. */
const withOptions = (settings, change) => ({
  ...settings,
  chains: mapValues(settings.chains, chain => chain.map(row => (typeof row === 'string' ? row : change(row)))),
  endpoints: mapValues(settings.endpoints ?? {}, change),
})

/** The limits out of reach; the filters still count. */
const withoutLimits = settings =>
  withOptions(settings, ({ ...filters }) => {
    if (filters.ratelimit) filters.ratelimit = { ...filters.ratelimit, rpm: UNLIMITED }
    if (filters.admission) filters.admission = { ...filters.admission, in_flight: UNLIMITED }
    return filters
  })

/** The settings with the chain of inference cut short; the other chains stay as they are. */
function withoutFilters(settings, names) {
  if (names.length === 0) return settings
  const inference = settings.chains.inference.filter(row => !names.includes(nameOf(row)))
  const left = filters => Object.fromEntries(Object.entries(filters).filter(([name]) => !names.includes(name)))
  return {
    ...settings,
    chains: { ...settings.chains, inference },
    endpoints: mapValues(settings.endpoints ?? {}, left),
  }
}

const manifest = (upstream, id, more) => ({
  provider: id,
  name: id,
  base_url: `${upstream}/v1`,
  // Below the streams that are held open at once, a provider's limit would be what is measured.
  concurrency: 100_000,
  auth: { scheme: 'bearer', secret: 'sk-bench' },
  models: [{ model: id, id: `${id}-1`, pricing: { prompt: '1.00', completion: '2.00' }, supports: ['streaming'] }],
  ...more,
})

const manifests = upstream => [
  manifest(upstream, models.chat, { wires: { chat: 'openai.chat' } }),
  manifest(upstream, models.messages, {
    wires: { chat: 'anthropic.messages' },
    auth: { scheme: 'header', header: 'x-api-key', secret: 'sk-bench' },
  }),
  manifest(upstream, models.embeddings, {
    wires: { embeddings: 'openai.embeddings' },
    models: [{ model: models.embeddings, pricing: { prompt: '1.00' } }],
  }),
  manifest(upstream, models.images, {
    wires: { images: 'openai.images' },
    models: [{ model: models.images, id: 'gpt-image-1', pricing: { prompt: '5.00', image_output: '40.00' } }],
  }),
  manifest(upstream, models.speech, {
    wires: { speech: 'openai.speech' },
    models: [{ model: models.speech, pricing: { prompt: '15.00' } }],
  }),
  manifest(upstream, models.transcriptions, {
    wires: { transcriptions: 'openai.transcriptions' },
    models: [{ model: models.transcriptions, pricing: { input_audio_hour: '0.36' } }],
  }),
]

/** What models that answer no chats put out. */
const forms = {
  [models.embeddings]: { output: ['embedding'] },
  [models.images]: { output: ['image'] },
  [models.speech]: { output: ['audio'], tokenizer: 'characters' },
  [models.transcriptions]: { input: ['audio'], output: ['text'], operations: ['transcriptions'] },
}

const model = id => ({
  id,
  name: id,
  family: 'bench',
  input: ['text'],
  ...(forms[id] ?? { output: ['text'], max_output: 4096 }),
  context_length: 1_000_000,
  stability: 'stable',
})
