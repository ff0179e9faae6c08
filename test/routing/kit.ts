/** What routing tests share: settings with their defaults, catalogues of a few offers, and a memory under a fake clock. */
import { check } from '../../src/config/validate.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Log, Services } from '../../src/core/ports.ts'
import type { Credential } from '../../src/core/provider-settings.ts'
import type { Mapping, Model, Provider } from '../../src/core/translator.ts'
import { estimateTokens } from '../../src/core/usage.ts'
import { chat } from '../../src/operations/chat/index.ts'
import type { RoutedRequest, RoutingQuery } from '../../src/routing/query.ts'
import { sessionName } from '../../src/routing/session-affinity.ts'
import { type Settings, settings } from '../../src/routing/settings.ts'
import { MemoryAffinity } from '../../src/stores/memory/affinity.ts'
import { MemoryCircuits } from '../../src/stores/memory/circuits.ts'
import { MemoryMeasurements } from '../../src/stores/memory/measurements.ts'
import { type ExchangeFacts, exchange, principal } from '../core/kit.ts'
import { flat } from '../core/prices.ts'
import { target } from '../plugins/wire-kit.ts'

/** As a file would set them; everything else has its default. Numbers of milliseconds may stand for durations. */
export function settingsOf(options: object): Settings {
  const checked = check(settings, withUnits(options))
  if ('issue' in checked) throw new Error(`${checked.issue.path.join('.')}: ${checked.issue.message}`)
  return checked.value
}

const durations = new Set(['default_latency', 'window', 'newest', 'recent', 'ttl', 'base', 'max'])
function withUnits(options: object): object {
  const entries = Object.entries(options as Record<string, unknown>).map(([key, value]) => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return [key, withUnits(value)]
    return [key, durations.has(key) && typeof value === 'number' ? `${value}ms` : value]
  })
  return Object.fromEntries(entries)
}

export const credential = (id: string): Credential => ({
  id,
  source: 'platform',
  secret: `sk-${id}`,
  fingerprint: `f-${id}`,
})

export const provider = (id: string, more: Partial<Provider> = {}): Provider =>
  target({
    provider: {
      id,
      wires: new Map([['chat', target().translator]]),
      credentials: [credential(id)],
      priority: 1,
      timeouts: { connect: 1000, firstEvent: 10_000, idle: 10_000, total: 60_000 },
      ...more,
    },
  }).provider

export type Offer = readonly [by: Provider, more?: Partial<Mapping>]

/** USD per million tokens, of prompt and completion alike. */
export const priced = (usd: string): Partial<Mapping> => ({
  price: flat({ prompt: usd, completion: usd }),
  pricing: { prompt: usd, completion: usd },
})

/** Models by id; every offer streams, and costs a dollar unless it says otherwise. */
export function catalogOf(models: Record<string, { model?: Partial<Model>; offers: Offer[] }>): Catalog {
  const catalog = { models: new Map<string, Model>(), aliases: new Map<string, Model>(), providers: new Map() }
  for (const [id, { model: more, offers }] of Object.entries(models)) {
    const mappings: Mapping[] = []
    const model: Model = { ...target().mapping.model, id, output: ['text'], ...more, mappings }
    catalog.models.set(id, model)
    for (const [by, fields] of offers) {
      catalog.providers.set(by.id, by)
      const { wires } = by
      const supports = new Set(['streaming'] as const)
      const externalId = `${id}-1`
      mappings.push({
        ...target().mapping,
        model,
        provider: by,
        wires,
        externalId,
        supports,
        ...priced('1'),
        ...fields,
      })
    }
  }
  return catalog
}

/** What routing remembers, under a clock that only the test moves; chance gives what `chances` holds, then 0.999. */
export class Memory implements Pick<Services, 'measurements' | 'circuits' | 'affinity' | 'random' | 'log'> {
  /** Milliseconds. */
  time = 3_600_000
  readonly chances: number[] = []
  readonly logged: object[] = []
  readonly #now = () => this.time
  readonly measurements = new MemoryMeasurements(this.#now)
  readonly circuits = new MemoryCircuits({ now: this.#now, random: () => 0 })
  readonly affinity = new MemoryAffinity(this.#now)
  readonly random = () => this.chances.shift() ?? 0.999
  /** Models whose retry budget was spent. */
  readonly spent: string[] = []
  readonly metrics = { ruleApplied() {}, retryBudgetSpent: (model: string) => void this.spent.push(model) }
  /** Messages at `info`. */
  readonly told: string[] = []
  readonly log: Log = {
    debug() {},
    info: (_, message) => void this.told.push(message),
    error() {},
    warn: fields => void this.logged.push(fields),
  }

  /** So many attempts of an organization at an offer, of which so many failed. */
  attempts(offer: string, ok: number, failed = 0, sample: object = {}, org = principal.orgId): void {
    for (let count = 0; count < ok; count++) this.measurements.add(offer, { ok: true, ...sample }, org)
    for (let count = 0; count < failed; count++) this.measurements.add(offer, { ok: false }, org)
  }
}

/** What routing reads of a request, of a chat of organization "org-1" unless it says otherwise. */
export function queryOf(catalog: Catalog, fields: object = {}, facts: Partial<RoutingQuery> = {}): RoutingQuery {
  const request = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields } as RoutedRequest
  const { operation = chat } = facts
  return {
    operation,
    request,
    streaming: 'stream' in request && request.stream === true,
    promptTokens: estimateTokens(operation.promptSize(request)),
    terms: operation.terms?.(request) ?? {},
    catalog,
    snapshot: { routes: () => [] },
    principal,
    tenant: ('principal' in facts ? facts.principal : principal)?.orgId ?? '',
    policy: undefined,
    access: undefined,
    at: Date.now(),
    session: sessionName({}, operation, request),
    failover: true,
    ...facts,
  }
}

/** A chat exchange that has been read. */
/** However busy the machine is, the turns of its loop have room. */
export const asking = (catalog: Catalog, request: object = {}, facts: ExchangeFacts = {}): Exchange => {
  const ex = exchange({
    request: { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...request },
    snapshot: { catalog },
    principal,
    ...facts,
  })
  return Object.assign(ex, { turn: () => undefined })
}
