/** Applies a provider's quirks (drop, rename, default, clamp) to an encoded body. */

import type { Quirks } from '../../core/provider-settings.ts'
import type { Provider } from '../../core/translator.ts'
import type { Json } from '../../json/json.ts'
import { errors, type GatewayError } from '../../lib/error.ts'
import { perObject } from '../../lib/per-object.ts'

/** Bounds of all quirks for one request: characters added, and objects visited. */
const MAX_ADDED_CHARACTERS = 1024 * 1024
const MAX_VISITS = 250_000

interface QuirkStep {
  readonly segments: readonly string[]
  readonly change: Change
}
/** `parent` may be changed. */
type Change = (parent: Json, run: QuirkRun) => void

/**
 * Changes `body` in place; what is nested is copied first, because encoders share it with the client's request. Throws
 * a 400, for which another provider may do, when that would add or look at too much.
 */
export function applyQuirks(provider: Provider, body: Json): void {
  const steps = stepsOf(provider)
  if (steps.length === 0) return
  const run = new QuirkRun(provider)
  for (const { segments, change } of steps) run.visit(body, segments, 0, change)
}

const stepsOf = perObject(({ quirks }: Provider): readonly QuirkStep[] => compile(quirks))

function compile(quirks: Quirks): QuirkStep[] {
  const at = (path: string, changeOf: (key: string) => Change): QuirkStep => {
    const segments = path.split('.')
    return { change: changeOf(segments.pop()!), segments }
  }
  return [
    ...[...quirks.drop].map(path => at(path, key => parent => void delete parent[key])),
    ...Object.entries(quirks.clamp).map(([path, [low, high]]) =>
      at(path, key => parent => {
        const value = parent[key]
        if (typeof value === 'number') parent[key] = Math.min(high, Math.max(low, value))
      }),
    ),
    ...Object.entries(quirks.default).map(([path, value]) => {
      const { length } = JSON.stringify(value) ?? ''
      return at(path, key => (parent, run) => {
        if (parent[key] != null) return
        run.adds(key.length + length)
        parent[key] = value
      })
    }),
    ...Object.entries(quirks.rename).map(([path, name]) =>
      at(path, key => (parent, run) => {
        if (!Object.hasOwn(parent, key)) return
        run.adds(Math.max(0, name.length - key.length))
        parent[name] = parent[key]
        delete parent[key]
      }),
    ),
  ]
}

/** One body while it is changed. Each object and list of it is copied once, however many quirks there are. */
class QuirkRun {
  readonly #provider: Provider
  readonly #own = new Set<object>()
  #added = 0
  #visits = 0

  constructor(provider: Provider) {
    this.#provider = provider
  }

  /** Call it before so many characters are added. */
  adds(characters: number): void {
    this.#added += characters
    if (this.#added > MAX_ADDED_CHARACTERS)
      throw this.#error(`add more than ${MAX_ADDED_CHARACTERS} characters to this request`)
  }

  /** Calls `change` on every object at `path` from its segment `at` on (`*` is every element); `node` may be changed. */
  visit(node: Json, path: readonly string[], at: number, change: Change): void {
    const head = path[at]
    if (head === undefined) {
      change(node, this)
      return
    }
    const child = node[head]
    if (typeof child !== 'object' || child === null) return
    if (!Array.isArray(child)) node[head] = this.#changed(child, path, at + 1, change)
    else if (path[at + 1] === '*') {
      const list: unknown[] = this.#own.has(child) ? child : [...child]
      this.#own.add(list)
      node[head] = list
      for (let index = 0; index < list.length; index++) list[index] = this.#changed(list[index], path, at + 2, change)
    }
  }

  /** Changes objects only; other values stay. */
  #changed(value: unknown, path: readonly string[], at: number, change: Change): unknown {
    if (++this.#visits > MAX_VISITS) throw this.#error(`look at more than ${MAX_VISITS} objects of this request`)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const copy = this.#own.has(value) ? value : { ...value }
    this.#own.add(copy)
    this.visit(copy as Json, path, at, change)
    return copy
  }

  #error(what: string): GatewayError {
    const message = `The quirks of provider "${this.#provider.id}" would ${what}. Send fewer messages or tools.`
    return errors.invalidParameters(message).with({ failover: true })
  }
}
