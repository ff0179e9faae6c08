/** The health of providers, as commands and metrics show it. */
import t from 'tap'
import { offerCircuit, providerHealth } from '../../src/routing/provider-health.ts'
import { catalogOf, credential, Memory, provider } from './kit.ts'

const POLICY = { failures: 5, baseMs: 30_000, maxMs: 300_000, jitter: 0 }

/** Three providers: one with two credentials and two models, one with one, one without. */
function setUp() {
  const memory = new Memory()
  const many = provider('many', { credentials: [credential('first'), credential('second')] })
  const single = provider('single')
  const bare = provider('bare', { credentials: [] })
  const catalog = catalogOf({ small: { offers: [[many], [single], [bare]] }, large: { offers: [[many]] } })
  const { circuits } = memory
  const health = () => Object.fromEntries(providerHealth(catalog, circuits).map(one => [one.id, one]))
  const trip = (key: string) => void circuits.trip(key, POLICY, 'org-1')
  return { memory, circuits, catalog, health, trip }
}

t.test('a provider is live while its circuits are closed', t => {
  const { health } = setUp()
  t.match(health(), {
    many: { status: 'live', offers: 2, broken: [], credentials: [{ circuit: 'closed' }, { circuit: 'closed' }] },
    single: { status: 'live', offers: 1, broken: [] },
    bare: { status: 'no credential' },
  })
  t.end()
})

t.test('a refused credential shows, and fails its provider when there is no other', t => {
  const { health, trip } = setUp()
  trip('many/small#first')
  trip('single/small#single')
  t.match(health(), {
    many: { status: 'degraded', broken: [], credentials: [{ circuit: 'open', openMs: 30_000 }, { circuit: 'closed' }] },
    single: {
      status: 'credential failing',
      broken: [{ offer: 'single/small' }],
      credentials: [{ circuit: 'open', openMs: 30_000 }],
    },
  })
  trip('many/large#second')
  t.match(health().many, { status: 'credential failing' })
  t.end()
})

t.test('an offer that is down degrades its provider, and all of them fail it', t => {
  const { health, trip } = setUp()
  trip('many/small')
  t.match(health().many, { status: 'degraded', broken: [{ offer: 'many/small', circuit: 'open', openMs: 30_000 }] })
  trip('many/large')
  t.match(health().many, { status: 'failing' })
  t.end()
})

t.test('the circuit of an offer is that of its best credential where that is worse', t => {
  const { circuits, memory, trip } = setUp()
  const seen = () => offerCircuit('many/small', ['many/small#first', 'many/small#second'], circuits)
  trip('many/small#first')
  t.strictSame(seen(), { circuit: 'closed', openMs: 0 })
  trip('many/small#second')
  t.strictSame(seen(), { circuit: 'open', openMs: 30_000 })
  memory.time += 30_000
  t.strictSame(seen(), { circuit: 'half-open', openMs: 0 })
  trip('many/small')
  t.strictSame(seen(), { circuit: 'open', openMs: 30_000 })
  t.end()
})
