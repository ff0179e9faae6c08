/** Applies a provider's quirks (drop, rename, default, clamp) to an encoded body. */
import type { Provider, Quirks } from '../core/catalog.ts'
import type { Json } from '../core/json.ts'

type Step = (body: Json) => void

/** Changes `body` in place; what is nested is copied first, because encoders share it with the client's request. */
export function bend(provider: Provider, body: Json): void {
  for (const step of stepsOf(provider)) step(body)
}

const compiled = new WeakMap<Provider, readonly Step[]>()
function stepsOf(provider: Provider): readonly Step[] {
  let steps = compiled.get(provider)
  if (!steps) {
    steps = compile(provider.quirks)
    compiled.set(provider, steps)
  }
  return steps
}

function compile(quirks: Quirks): Step[] {
  const at = (path: string, change: (parent: Json, key: string) => void): Step => {
    const segments = path.split('.')
    const key = segments.pop()!
    return body => visit(body, segments, parent => change(parent, key))
  }
  return [
    ...quirks.drop.map(path => at(path, (parent, key) => void delete parent[key])),
    ...Object.entries(quirks.clamp).map(([path, [low, high]]) =>
      at(path, (parent, key) => {
        const value = parent[key]
        if (typeof value === 'number') parent[key] = Math.min(high, Math.max(low, value))
      }),
    ),
    ...Object.entries(quirks.default).map(([path, value]) =>
      at(path, (parent, key) => {
        parent[key] ??= value
      }),
    ),
    ...Object.entries(quirks.rename).map(([path, name]) =>
      at(path, (parent, key) => {
        if (!Object.hasOwn(parent, key)) return
        parent[name] = parent[key]
        delete parent[key]
      }),
    ),
  ]
}

/** Calls `change` on every object at `path` (`*` is every element), copying each level on the way. */
function visit(node: Json, path: readonly string[], change: (parent: Json) => void): void {
  const [head, ...rest] = path
  if (head === undefined) {
    change(node)
    return
  }
  const child = node[head]
  if (Array.isArray(child) && rest[0] === '*') {
    node[head] = child.map(element => copied(element, copy => visit(copy, rest.slice(1), change)))
  } else {
    node[head] = copied(child, copy => visit(copy, rest, change))
    if (node[head] === undefined) delete node[head]
  }
}

function copied(value: unknown, change: (copy: Json) => void): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const copy = { ...(value as Json) }
  change(copy)
  return copy
}
