/** What `route` would choose for a request, and what of each candidate says so. Changes nothing that is remembered. */
import { Cancellation } from '../core/cancel.ts'
import type { Mapping } from '../core/catalog.ts'
import { errors } from '../core/error.ts'
import { Exchange } from '../core/exchange.ts'
import { isLive, offerOf, serves } from '../core/offer.ts'
import type { Ops } from '../core/ops.ts'
import type { Circuits, ExplainedCandidate, ExplainedRoute, RouteQuestion, Services } from '../core/ports.ts'
import type { Route, Snapshot } from '../core/snapshot.ts'
import { TOKEN_CHARACTERS } from '../core/usage.ts'
import { outlierDetectorOf } from './outlier-detector.ts'
import { plan } from './plan.ts'
import { groupsOf, type Ranked, Ranking } from './ranking.ts'
import { capable } from './requirements.ts'
import { resolve } from './resolve.ts'
import type { Settings } from './settings.ts'
import { TargetQueue } from './target-queue.ts'
import { TargetSelector } from './target-selector.ts'

type ExplainedState = Pick<Services, 'measurements' | 'circuits' | 'affinity'>

/** Throws the error of the request: 404 for an unknown model, 400 for what no target can serve. */
export function explainRoute(snapshot: Snapshot, memory: ExplainedState, question: RouteQuestion): ExplainedRoute {
  const { route, settings } = routeFor(snapshot, question.model)
  const ex = exchangeFor(snapshot, route, question)
  const affinity = { get: (key: string) => memory.affinity.get(key), set() {} }
  const choice = new TargetSelector(settings, { ...memory, affinity, random: () => 1 }).choose(ex)
  const queue = new TargetQueue(choice, outlierDetectorOf(memory.circuits), null)
  const places: string[] = []
  for (let step = queue.next(); step; step = queue.next()) {
    if (!places.includes(step.candidate.key)) places.push(step.candidate.key)
  }
  const groups = groupsOf(plan(ex, { auto: settings.auto, unpinned: true }))
  const ranked = new Ranking(settings, memory.measurements).rank(ex, groups, question.session !== undefined)
  const placeOf = (one: Ranked) => places.indexOf(one.candidate.key)
  const asked = ranked.filter(one => placeOf(one) >= 0).sort((a, b) => placeOf(a) - placeOf(b))
  const candidates = [...asked, ...ranked.filter(one => placeOf(one) < 0)]
  return {
    model: ex.requestedId,
    reason: choice.reason,
    choice: places[0]!,
    candidates: candidates.map(one => explained(one, placeOf(one), memory.circuits)),
    excluded: excludedOf(ex, candidates),
  }
}

/** The endpoint that serves a model, with the options of its `route` filter. */
function routeFor(snapshot: Snapshot, name: string): { route: Route; settings: Settings } {
  const wanted = resolve(snapshot.catalog, name)
  const isAbout = ({ operation }: Route['endpoint']) =>
    operation && (wanted.kind !== 'model' || serves(wanted.model, operation.name))
  const route = snapshot.routes().find(({ endpoint }) => isAbout(endpoint))
  const link = route?.chain.links.find(({ factory }) => factory.name === 'route')
  if (!route || !link) throw errors.notFound('No endpoint that serves this model has a filter "route".')
  return { route, settings: link.options as Settings }
}

function exchangeFor(snapshot: Snapshot, { endpoint }: Route, question: RouteQuestion): Exchange {
  const { model, routing, stream, prompt = 0, session } = question
  const text = 'x'.repeat(TOKEN_CHARACTERS * prompt)
  const headers = session === undefined ? {} : { 'x-session-id': session }
  const ex = new Exchange({
    snapshot,
    endpoint,
    headers,
    query: '',
    signal: new Cancellation(),
    body: () => Promise.reject(errors.internal('there is no body')),
  })
  const chat: Ops['chat'] = { model, routing, stream, messages: [{ role: 'user', content: text }] }
  ex.request = endpoint.operation?.name === 'embeddings' ? { model, input: text } : chat
  return ex
}

function explained(
  { candidate, measured, facts, score }: Ranked,
  place: number,
  circuits: Circuits,
): ExplainedCandidate {
  const { terms, base, priorityPenalty, uptimePenalty, total } = score
  return {
    offer: candidate.key,
    place: place < 0 ? null : place + 1,
    price: facts.price === undefined ? null : candidate.image ? facts.price / 1e12 : facts.price / 1e6,
    priority: facts.priority,
    requests: measured?.requests ?? 0,
    uptime: facts.uptime ?? null,
    throughput: facts.throughput ?? null,
    latency: facts.latency ?? null,
    circuit: outlierDetectorOf(circuits).state(candidate.key, null),
    openMs: Math.ceil(circuits.openMs(candidate.key, null)),
    terms,
    base,
    priorityPenalty,
    uptimePenalty,
    score: total,
  }
}

/** Why each other offer of the requested model is none for this request. */
function excludedOf(ex: Exchange, candidates: readonly Ranked[]): ExplainedRoute['excluded'] {
  const wanted = resolve(ex.snapshot.catalog, ex.request!.model)
  if (wanted.kind !== 'model') return []
  const left = wanted.model.mappings.filter(mapping =>
    candidates.every(({ candidate }) => candidate.mapping !== mapping),
  )
  return left.map(mapping => ({ offer: offerOf(mapping), reason: whyNot(ex, mapping) }))
}

function whyNot(ex: Exchange, mapping: Mapping): string {
  const { operation } = ex
  if (!mapping.wires.has(operation.name)) return `its provider does not speak "${operation.name}"`
  if (mapping.provider.priority <= 0) return 'its provider has priority 0'
  const today = new Date(ex.at).toISOString().slice(0, 10)
  if (mapping.deactivatedAt && mapping.deactivatedAt <= today) return 'it is deactivated'
  const { unmet } = capable([mapping], operation, ex.request!)
  if (unmet) return unmet.message
  if (!isLive(mapping.provider)) return 'its provider has no credential'
  if (mapping.price === undefined && mapping.unpriced !== 'allow') return 'its price is unknown'
  // It could serve the request alone: only a soft row of the requirements has left it out.
  return 'another provider fits the length or the form of the request better'
}
