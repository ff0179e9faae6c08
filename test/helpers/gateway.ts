/** Runs the built gateway as an operator would: in its own process and folder. */
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { Child, type Exit, type Scope } from './child.ts'

type Tree = Record<string, unknown>
type HeaderSet = Record<string, string | null>

export interface GatewayOptions {
  /** Manifests by provider id; `provider`, `name`, `auth`, `wires` and `models` have defaults (see `manifest`). */
  providers: Record<string, Tree>
  /** Entries of `models.d`; by default one per model named in a manifest. */
  models?: Tree[]
  /** Merged into the settings of `gateway.yaml`, key by key. */
  config?: Tree
  /** Replaces the shipped chains. */
  chains?: Tree
  /** Environment variables; the environment is empty otherwise. */
  env?: Record<string, string>
  /** Additional files, by path in the gateway's folder. */
  files?: Record<string, string>
}

/** A running gateway. Addresses and pid change with `restart`. */
export interface Gateway {
  readonly url: string
  readonly port: number
  readonly adminUrl: string
  readonly adminPort: number
  readonly pid: number
  /** The API key of the first start. */
  readonly key: string
  /** The admin listener's token. */
  readonly token: string
  readonly dir: string
  readonly configPath: string
  /** How the current process ends; pending while it runs. */
  readonly exited: Promise<Exit>
  /** Output of the current process. */
  stdout(): string
  stderr(): string
  /** `POST /v1/chat/completions`; a text becomes a user message to the model `test`. */
  chat(body: string | Tree, headers?: HeaderSet, signal?: AbortSignal): Promise<Response>
  /** Sends JSON, or text unchanged, with the key unless `headers` contain a credential; null removes a header. */
  post(path: string, body: unknown, headers?: HeaderSet, signal?: AbortSignal): Promise<Response>
  get(path: string, headers?: HeaderSet): Promise<Response>
  /** Calls the admin listener with its token. */
  admin(method: string, path: string, body?: unknown): Promise<Response>
  /** The text of `/metrics`. */
  metrics(): Promise<string>
  /** Writes `providers.d/<id>.yaml` in one step, like editors that rename. */
  writeProvider(id: string, manifest: Tree): Promise<void>
  writeFile(path: string, text: string): Promise<void>
  /** Sends a signal and does not wait. */
  signal(name: NodeJS.Signals): void
  /** Sends a signal (SIGTERM) and waits for the end. */
  kill(name?: NodeJS.Signals): Promise<Exit>
  /** Ends the process, if it runs, and starts another one in the same folder. */
  restart(): Promise<void>
  /** Resident memory in bytes. */
  rss(): Promise<number>
  /** Number of open file descriptors. */
  descriptors(): Promise<number>
}

/** The line written to the descriptor that `GATEWAY_READY_FD` names. */
interface Ready {
  listen: string
  admin: string
  key: string | null
  pid: number
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const readyTimeoutMs = 60_000
/** The provider credential of manifests without one. */
export const upstreamSecret = 'sk-upstream-canary'

/** A mapping of the model `test`: 1 USD per million prompt tokens, 2 USD per million completion tokens. */
export const testMapping = {
  model: 'test',
  id: 'test-1',
  pricing: { prompt: '1.00', completion: '2.00' },
  supports: ['streaming', 'tools', 'parallel_tool_calls', 'reasoning', 'json_output', 'structured_outputs', 'vision'],
}

/** A manifest completed with defaults: OpenAI's chat wire, a bearer secret, `testMapping`. */
export const manifest = (id: string, given: Tree): Tree => ({
  provider: id,
  name: id,
  auth: { scheme: 'bearer', secret: upstreamSecret },
  wires: { chat: 'openai.chat' },
  models: [testMapping],
  // These stand for providers in the public. `undefined` is the default of this machine's: data alone.
  inline_media: false,
  ...given,
})

const DATABASE = '../data/gateway.db'
let template: Promise<string> | undefined
/** Makes a database as a start in an empty folder leaves it, without organizations; the processes of a run share it. */
async function makeTemplate(folder: string): Promise<string> {
  const path = join(folder, 'new.db')
  if (!existsSync(path)) {
    const { openSqlite } = await import('../../src/stores/sqlite/index.ts')
    const own = join(folder, `new-${process.pid}.db`)
    await openSqlite(own).close()
    await rename(own, path)
  }
  return path
}

/** Writes the files, starts the gateway and resolves when it is ready. Kills it when the test ends. */
export async function startGateway(t: Scope, options: GatewayOptions): Promise<Gateway> {
  const command = join(root, 'bin/gateway.js')
  if (!existsSync(command) || !existsSync(join(root, 'dist/src/main.js'))) {
    throw new Error('The gateway is not built: run `npm run build` first.')
  }
  const dir = await mkdtemp(join(tmpdir(), 'gateway-'))
  const configPath = join(dir, 'config/gateway.yaml')
  const settings = await settingsOf(options)
  const tokenPath = join(dirname(resolve(dir, 'config', settings.stores.sqlite)), 'admin.token')
  await writeFiles(dir, settings, options)
  const run = process.env.COMPILED_TESTS
  if (run !== undefined && settings.stores.sqlite === DATABASE && settings.stores.postgres === undefined) {
    // The migrations take a tenth of the time of a start. `e2e/start.test.ts` begins with empty folders.
    template ??= makeTemplate(run)
    await copyFile(await template, join(dir, 'data/gateway.db'))
  }

  let child: Child
  let ready: Ready
  let key: string
  let token: string
  t.teardown(async () => {
    if (child && !t.passing()) console.error(`--- stderr of the gateway\n${child.stderr.slice(-8000)}`)
    await child?.kill('SIGKILL')
    await rm(dir, { recursive: true, force: true })
  })
  const start = async () => {
    const env = { HOME: dir, ...sharedKey(settings), ...options.env, GATEWAY_READY_FD: '3' }
    child = new Child(command, ['--config', configPath], { env, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
    ready = JSON.parse(await child.firstLine(3, readyTimeoutMs)) as Ready
    key = ready.key ?? key
    token = (await readFile(tokenPath, 'utf8')).trim()
  }
  await start()

  const send = (url: string, method: string, body: unknown, headers: HeaderSet, signal?: AbortSignal) => {
    const kept = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== null)
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    return fetch(url, {
      method,
      headers: kept,
      redirect: 'manual',
      ...(text !== undefined && { body: text }),
      ...(signal && { signal }),
    })
  }
  const withKey = (headers: HeaderSet): HeaderSet =>
    'authorization' in headers || 'x-api-key' in headers ? headers : { authorization: `Bearer ${key}`, ...headers }
  const post: Gateway['post'] = (path, body, headers = {}, signal) =>
    send(
      `http://${ready.listen}${path}`,
      'POST',
      body,
      { 'content-type': 'application/json', ...withKey(headers) },
      signal,
    )
  const admin: Gateway['admin'] = (method, path, body) =>
    send(`http://${ready.admin}${path}`, method, body, {
      authorization: `Bearer ${token}`,
      'content-type': body === undefined ? null : 'application/json',
    })
  const write: Gateway['writeFile'] = (path, text) => replaceFile(join(dir, path), text)

  return {
    get url() {
      return `http://${ready.listen}`
    },
    get port() {
      return portOf(ready.listen)
    },
    get adminUrl() {
      return `http://${ready.admin}`
    },
    get adminPort() {
      return portOf(ready.admin)
    },
    get pid() {
      return ready.pid
    },
    get key() {
      return key
    },
    get token() {
      return token
    },
    get exited() {
      return child.exited
    },
    dir,
    configPath,
    stdout: () => child.stdout,
    stderr: () => child.stderr,
    chat: (body, headers, signal) => {
      const request = typeof body === 'string' ? { model: 'test', messages: [{ role: 'user', content: body }] } : body
      return post('/v1/chat/completions', request, headers, signal)
    },
    post,
    get: (path, headers = {}) => send(`http://${ready.listen}${path}`, 'GET', undefined, withKey(headers)),
    admin,
    metrics: async () => (await admin('GET', '/metrics')).text(),
    writeProvider: (id, given) => write(`providers.d/${id}.yaml`, stringify(manifest(id, given))),
    writeFile: write,
    signal: name => child.signal(name),
    kill: (name = 'SIGTERM') => child.kill(name),
    restart: async () => {
      await child.kill('SIGTERM')
      await start()
    },
    rss: async () => {
      const status = await readFile(`/proc/${ready.pid}/status`, 'utf8')
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
    },
    descriptors: async () => (await readdir(`/proc/${ready.pid}/fd`)).length,
  }
}

/** The settings of `gateway.yaml`: own ports and stores, everything else as shipped. */
async function settingsOf({
  config = {},
  chains,
}: GatewayOptions): Promise<Tree & { stores: { sqlite: string; postgres?: unknown } }> {
  const shipped = parse(await readFile(join(root, 'config/gateway.yaml'), 'utf8')) as Tree
  // A test that sets options of `route` tests routing.
  const routes = Object.values((config.endpoints ?? {}) as Record<string, Tree>).some(filters => 'route' in filters)
  const base = {
    server: { listen: '127.0.0.1:0', admin: '127.0.0.1:0', drain: '3s' },
    stores: { sqlite: DATABASE },
    catalog: { models: './models.d', providers: '../providers.d' },
    chains: steady((chains ?? shipped.chains) as Record<string, unknown[]>, routes ? UNSHED : { ...UNSHED, ...STEADY }),
    endpoints: shipped.endpoints,
  }
  return overlay(base, config) as typeof base
}

/** One master key for all gateways on a PostgreSQL database, unless a test gives one. */
const sharedKey = ({ stores }: { readonly stores: Tree }): Record<string, string> =>
  stores.postgres === undefined ? {} : { GATEWAY_MASTER_KEY: 'one master key of all nodes' }

/** On a busy machine the loop of a gateway lags, for which no request is refused. */
const UNSHED = { admission: { lag: '60s' } }
/** Routing depends only on priority, price and failures. */
const STEADY = { route: { exploration: 0, weights: { throughput: 0, latency: 0 }, preference: { enabled: false } } }

/** Chains with options that keep answers from depending on chance or load, unless a chain sets others. */
function steady(chains: Record<string, unknown[]>, options: Record<string, Tree>): Tree {
  const filter = (entry: unknown): unknown => {
    const [name, given] = isMap(entry) ? Object.entries(entry)[0]! : [String(entry), {}]
    const added = options[name]
    return added && isMap(given) ? { [name]: { ...added, ...given } } : entry
  }
  return Object.fromEntries(Object.entries(chains).map(([name, chain]) => [name, chain.map(filter)]))
}

async function writeFiles(dir: string, settings: Tree, options: GatewayOptions): Promise<void> {
  const manifests = Object.entries(options.providers).map(([id, given]) => manifest(id, given))
  const named = manifests.flatMap(({ models }) => (models as { model: string }[]).map(({ model }) => model))
  const models = options.models ?? [...new Set(named)].map(modelEntry)
  const files: Record<string, string> = {
    'config/gateway.yaml': stringify(settings),
    'config/models.d/test.yaml': stringify({ models }),
    ...options.files,
  }
  for (const given of manifests) files[`providers.d/${given.provider}.yaml`] = stringify(given)
  await mkdir(join(dir, 'data'))
  for (const [path, text] of Object.entries(files)) await replaceFile(join(dir, path), text)
}

const modelEntry = (id: string): Tree => ({
  id,
  name: id,
  family: 'test',
  input: ['text', 'image'],
  output: ['text'],
  context_length: 128000,
  max_output: 4096,
  stability: 'stable',
})

/** Merges `over` into `base`: maps are merged, everything else is replaced. */
function overlay(base: unknown, over: unknown): unknown {
  if (!isMap(base) || !isMap(over)) return over
  const merged = { ...base }
  for (const [name, value] of Object.entries(over)) merged[name] = overlay(base[name], value)
  return merged
}

const isMap = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))
