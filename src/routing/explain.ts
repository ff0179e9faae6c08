/** Explains the choice of `route` for a request and each candidate. Changes no stored state. */

import type { Catalog } from '../core/catalog.ts'
import type { Tool } from '../core/chat-request.ts'
import { isLive, isOver, offerOf, serves } from '../core/offer.ts'
import type { Operation } from '../core/operation.ts'
import type { Ops } from '../core/ops.ts'
import type { Circuits, ExplainedCandidate, ExplainedRoute, RouteQuestion, Services } from '../core/ports.ts'
import type { Route, Snapshot } from '../core/snapshot.ts'
import type { Mapping } from '../core/translator.ts'
import { errors, GatewayError } from '../lib/error.ts'
import { labelsOf } from '../policy/labels.ts'
import { candidateTargetOf } from './candidate.ts'
import { namedModels, type PlannedModel, plansOf, type Skipped } from './named-models.ts'
import { outlierDetectorOf } from './outlier-detector.ts'
import { plan } from './plan.ts'
import { withoutSuffix } from './preferences.ts'
import { circuitOf, offerCircuit, worstKey } from './provider-health.ts'
import type { RoutingQuery } from './query.ts'
import { groupsOf, type Ranked, Ranking } from './ranking.ts'
import { capable } from './requirements.ts'
import { resolve, resolveAny } from './resolve.ts'
import { ruleFor } from './rules.ts'
import type { Settings } from './settings.ts'
import { TargetQueue } from './target-queue.ts'
import { TargetSelector } from './target-selector.ts'
import { allTargetsOf, virtualOf } from './virtual-models.ts'

type ExplainedState = Pick<Services, 'measurements' | 'circuits' | 'affinity'>

/** Throws the error of the request: 404 for an unknown model, 400 for what no target can serve. */
export function explainRoute(snapshot: Snapshot, memory: ExplainedState, question: RouteQuestion): ExplainedRoute {
  const asked = withoutSuffix(question.model).name
  const rule = ruleFor(asked, {
    catalog: snapshot.catalog,
    principal: undefined,
    asker: askerOf(question),
    tags: tagsOf(question.tags),
  })
  if (rule?.deny !== undefined) throw errors.modelDenied(`${rule.deny} (rule ${rule.name})`)
  const { operation, settings } = routeFor(snapshot, rule?.use ?? asked)
  const query = queryOf(snapshot, operation, question)
  const named = namedModels(query, () => 0)
  const skipped: Skipped[] = []
  const selector = new TargetSelector(settings, { ...memory, random: () => 1 })
  const planned = selector.inOrder(plansOf(named, settings, skipped))
  const parts = planned.map(one => explainModel(one, settings, memory, question))
  const { virtual } = named[0]!
  const [first] = parts
  const shown = rule && { rule: rule.name, mirror: rule.mirror }
  if (virtual === undefined) return Object.assign({}, first!, shown)
  let before = 0
  const candidates = parts.flatMap(part => {
    const placed = part.candidates.map(one => (one.place === null ? one : { ...one, place: one.place + before }))
    before += part.candidates.filter(({ place }) => place !== null).length
    return placed
  })
  const model = virtualOf(snapshot.catalog, rule?.use ?? asked)
  const conditional = (model ? allTargetsOf(model, snapshot.catalog) : [])
    .filter(name => !named.some(({ query }) => query.request.model === name))
    .map(offer => ({ offer, reason: whyLeft(snapshot.catalog, offer) }))
  return {
    model: virtual,
    ...shown,
    reason: first!.reason,
    choice: first!.choice,
    candidates,
    excluded: [
      ...parts.flatMap(({ excluded }) => excluded),
      ...skipped.map(({ named, error }) => ({ offer: named.query.request.model, reason: error.message })),
      ...conditional,
    ],
  }
}

/** Why a target of a virtual model is no candidate. */
function whyLeft(catalog: Catalog, name: string): string {
  try {
    resolve(catalog, name)
    return 'its condition "when" is not met'
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown.message
    throw thrown
  }
}

/** Explains one of the models that a name stands for. */
function explainModel(
  { query, found }: PlannedModel,
  settings: Settings,
  memory: ExplainedState,
  question: RouteQuestion,
): ExplainedRoute {
  const affinity = { get: (key: string) => memory.affinity.get(key), set() {} }
  const choice = new TargetSelector(settings, { ...memory, affinity, random: () => 1 }).choose(query, found)
  const queue = new TargetQueue(choice, outlierDetectorOf(memory.circuits), null)
  const places: string[] = []
  for (let step = queue.next(); step; step = queue.next()) {
    if (!places.includes(step.candidate.key)) places.push(step.candidate.key)
  }
  const groups = groupsOf(plan(query, { auto: settings.auto, unpinned: true }, found).targets)
  const ranked = new Ranking(settings, memory.measurements).rank(query, groups, question.session !== undefined)
  const placeOf = (one: Ranked) => places.indexOf(one.candidate.key)
  const tried = ranked.filter(one => placeOf(one) >= 0).sort((a, b) => placeOf(a) - placeOf(b))
  const candidates = [...tried, ...ranked.filter(one => placeOf(one) < 0)]
  return {
    model: found.requestedId,
    reason: choice.reason,
    choice: places[0]!,
    candidates: candidates.map(one => explained(one, placeOf(one), memory.circuits)),
    excluded: excludedOf(query, candidates),
  }
}

/** The operation of the endpoint that serves a model, with the options of its `route` filter. */
function routeFor(snapshot: Snapshot, asked: string): { operation: Operation; settings: Settings } {
  const virtual = virtualOf(snapshot.catalog, asked)
  const [reference] = resolveAny(snapshot.catalog, virtual ? allTargetsOf(virtual, snapshot.catalog) : [asked])
  const isAbout = ({ operation }: Route['endpoint']) =>
    operation && (reference!.kind !== 'model' || serves(reference!.model, operation.name))
  const route = snapshot.routes().find(({ endpoint }) => isAbout(endpoint))
  const operation = route?.endpoint.operation
  const link = route?.chain.links.find(({ factory }) => factory.name === 'route')
  if (!operation || !link) throw errors.notFound('No endpoint that serves this model has a filter "route".')
  return { operation, settings: link.options as Settings }
}

/** A query of no organization, whose request holds only what the requirements of every operation read. */
function queryOf(snapshot: Snapshot, operation: Operation, question: RouteQuestion): RoutingQuery {
  const { model, routing, stream, prompt = 0, session } = question
  type Read = Ops['chat'] & Ops['embeddings'] & Pick<Ops['image_edits'], 'images'> & Pick<Ops['speech'], 'characters'>
  const messages: Read['messages'] = question.vision ? [{ role: 'user', content: [IMAGE] }] : []
  const request: Read = { model, routing, stream, messages, input: '', characters: 0, images: [] }
  if (question.tools) request.tools = [TOOL]
  return {
    operation,
    request,
    streaming: stream === true && operation.output !== undefined,
    promptTokens: prompt,
    terms: {},
    catalog: snapshot.catalog,
    snapshot,
    principal: undefined,
    asker: askerOf(question),
    tags: tagsOf(question.tags),
    tenant: '',
    policy: undefined,
    access: undefined,
    at: Date.now(),
    session,
    failover: true,
  }
}

const IMAGE = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } } as const
const TOOL: Tool = { type: 'function', function: { name: 'any' } }

/** Conditions accept ids and names alike. */
const askerOf = ({ org = '', project = '', key = '' }: RouteQuestion): RoutingQuery['asker'] => ({
  orgId: org,
  orgName: org,
  projectId: project,
  keyId: key,
  keyName: key,
})

const tagsOf = (tags = ''): RoutingQuery['tags'] =>
  labelsOf({ http: { header: () => tags }, proven: undefined, options: undefined }).tags

function explained(
  { candidate, targets, measured, facts, score }: Ranked,
  place: number,
  circuits: Circuits,
): ExplainedCandidate {
  const { terms, base, priorityPenalty, uptimePenalty, total } = score
  const { polls } = candidateTargetOf(targets[0]!)
  return {
    offer: candidate.key,
    place: place < 0 ? null : place + 1,
    price: facts.price === undefined ? null : candidate.image ? facts.price / 1e12 : facts.price / 1e6,
    priority: facts.priority,
    requests: measured?.requests ?? 0,
    uptime: facts.uptime ?? null,
    throughput: facts.throughput ?? null,
    latency: facts.latency ?? null,
    ...offerCircuit(
      candidate.key,
      targets.map(({ credential }) => worstKey(candidate, credential, circuits)),
      circuits,
    ),
    ...(targets.length > 1 && {
      credentials: targets.map(({ credential }) => ({
        fingerprint: credential!.fingerprint,
        name: credential!.label,
        weight: credential!.weight,
        ...circuitOf(worstKey(candidate, credential, circuits), circuits),
      })),
    }),
    polls: polls === undefined ? null : circuitOf(polls, circuits),
    terms,
    base,
    priorityPenalty,
    uptimePenalty,
    score: total,
  }
}

/** Why each other offer of the requested model cannot serve this request. */
function excludedOf(query: RoutingQuery, candidates: readonly Ranked[]): ExplainedRoute['excluded'] {
  const reference = resolve(query.catalog, query.request.model)
  if (reference.kind !== 'model') return []
  const left = reference.model.mappings.filter(mapping =>
    candidates.every(({ candidate }) => candidate.mapping !== mapping),
  )
  return left.map(mapping => ({ offer: offerOf(mapping), reason: whyNot(query, mapping) }))
}

function whyNot({ operation, request, promptTokens, at }: RoutingQuery, mapping: Mapping): string {
  if (!mapping.wires.has(operation.name)) return `its provider does not speak "${operation.name}"`
  if (mapping.provider.priority <= 0) return 'its provider has priority 0'
  const today = new Date(at).toISOString().slice(0, 10)
  if (isOver(mapping, today)) return 'it is deactivated'
  const { error } = capable([mapping], operation, request, { promptTokens: () => promptTokens })
  if (error) return error.message
  if (!isLive(mapping.provider)) return 'its provider has no credential'
  if (mapping.price === undefined && mapping.unpriced !== 'allow') return 'its price is unknown'
  // It could serve the request alone: only a soft row of the requirements has left it out.
  return 'another provider fits the length or the form of the request better'
}
