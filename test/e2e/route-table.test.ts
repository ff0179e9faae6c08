/** Every route as it is shipped: what costs money asks who pays, counts, reserves and charges. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Registry } from '../../src/app/registry.ts'
import { link } from '../../src/config/link.ts'
import { loadFiles } from '../../src/config/load.ts'
import type { Services } from '../../src/core/ports.ts'

const path = fileURLToPath(new URL('../../config/gateway.yaml', import.meta.url))
const env = { GATEWAY_DEMO_URL: 'http://127.0.0.1:9' }
const { wires, filters, endpoints, operations } = new Registry()
const terminal = () => Promise.reject(new Error('nothing is served here'))
/** Filters take their ports when they are made, and use them when they serve: nothing is served here. */
const services = new Proxy({} as Services, { get: () => ({}) })
const registries = { wires, filters, endpoints, operations, services, terminal }
const snapshot = link(await loadFiles(path, { env }), registries)

t.test('no route that calls a provider lacks authentication, a limit or billing', async t => {
  const routes = snapshot.routes()
  t.equal(routes.length, endpoints.length, 'every endpoint is a route')
  const billable = routes.filter(({ endpoint }) => endpoint.serve === 'upstream')
  t.ok(billable.length >= 3)
  for (const { endpoint, chain } of billable) {
    const names = chain.links.map(({ factory }) => factory.name)
    const [auth, limit, bill, last] = ['auth', 'ratelimit', 'billing', 'translate'].map(name => names.indexOf(name))
    t.ok(
      auth! >= 0 && limit! > auth! && last! > limit! && bill! > limit!,
      `${endpoint.method} ${endpoint.path}: ${names}`,
    )
    const options = chain.links[auth!]!.options as { optional: boolean }
    t.equal(options.optional, false, `${endpoint.path} is not served to nobody`)
    const repeats = chain.links.findIndex(({ factory }) => factory.repeats)
    t.ok(bill! > repeats, `${endpoint.path} is billed for the attempt that answers`)
  }
})

t.test('an endpoint has an operation exactly when it is billable, so that none is priced as nothing', async t => {
  for (const { name, serve, operation, path } of endpoints) {
    // Parts of a session are charged as they end.
    t.equal(operation !== undefined, serve === 'upstream' || name === 'realtime', path)
  }
})

t.test('a chain that lacks one of them is refused before it serves a request', async t => {
  const files = await loadFiles(path, { env })
  const { chains } = files.gateway.value
  for (const missing of ['auth', 'ratelimit', 'billing', 'translate']) {
    const named = (entry: (typeof chains.inference & object)[number]) =>
      typeof entry === 'string' ? entry : Object.keys(entry)[0]
    const inference = chains.inference!.filter(entry => named(entry) !== missing)
    const value = { ...files.gateway.value, chains: { ...chains, inference }, endpoints: {} }
    const changed = { ...files, gateway: { ...files.gateway, value } }
    t.throws(() => link(changed, registries), { name: 'ConfigError' }, `without ${missing}`)
  }
})
