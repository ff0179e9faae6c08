/** Applies what virtual models set to requests (docs/virtual-models.md). */
import type { Preset } from '../core/catalog.ts'
import type { Message } from '../core/chat-request.ts'
import type { Json } from '../json/json.ts'
import type { RoutedRequest, RoutingQuery } from './query.ts'

/** Fields of which a request has one at most. */
const EXCLUSIVE = ['reasoning', 'reasoning_effort']
/** Fields that mean nothing without tools. */
const OF_TOOLS = ['tool_choice', 'parallel_tool_calls']

/** Members of a request before its preset, by name; undefined where it had none. */
interface Replaced {
  readonly fields: Readonly<Json>
  /** System prompts that were added at the front. */
  readonly system: readonly string[]
}

const replacedBy = new WeakMap<object, Replaced>()

/** Finds the members that a virtual model has replaced in a request; undefined where it changed nothing. */
export const replacedIn = (request: RoutedRequest): Replaced | undefined => replacedBy.get(request)

/** Combines what a virtual model and one of its targets set: the outer one wins. */
export function combined(outer: Preset | undefined, inner: Preset | undefined): Preset | undefined {
  if (!outer || !inner) return outer ?? inner
  return {
    defaults: { ...inner.defaults, ...outer.defaults },
    overrides: { ...inner.overrides, ...outer.overrides },
    system: [...outer.system, ...inner.system],
  }
}

/** Returns a copy of the query's request with the fields of a preset. */
export function withPreset(query: RoutingQuery, preset: Preset): RoutedRequest {
  const { request } = query
  const changed: Json = Object.assign({}, query.reread?.(preset) ?? filled(request as Readonly<Json>, preset))
  const before: Json = {}
  for (const name of new Set([...Object.keys(request), ...Object.keys(changed)])) {
    const own: unknown = Reflect.get(request, name)
    if (own !== changed[name]) before[name] = own
  }
  const system = preset.system.map((content): Message => ({ role: 'system', content }))
  if (system.length > 0 && Array.isArray(changed.messages)) changed.messages = [...system, ...changed.messages]
  replacedBy.set(changed, { fields: before, system: preset.system })
  return changed as RoutedRequest
}

/** A request that lacks what its client left out. */
function filled(request: Readonly<Json>, { defaults, overrides }: Preset): Json {
  const changed: Json = Object.assign({}, request)
  const isSet = (name: string) => changed[name] !== undefined
  for (const [name, value] of Object.entries(defaults)) {
    const isTaken = EXCLUSIVE.includes(name) ? EXCLUSIVE.some(isSet) : isSet(name)
    if (!isTaken && value !== null) changed[name] = value
  }
  for (const [name, value] of Object.entries(overrides)) {
    for (const other of EXCLUSIVE.includes(name) ? EXCLUSIVE : [name]) delete changed[other]
    if (value !== null) changed[name] = value
  }
  const hasTools = Array.isArray(changed.tools) && changed.tools.length > 0
  for (const name of OF_TOOLS) if (!hasTools && request[name] === undefined) delete changed[name]
  return changed
}
