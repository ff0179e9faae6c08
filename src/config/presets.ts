/** Links the request fields that virtual models set, by operation. */
import type { Preset } from '../core/catalog.ts'
import type { Endpoint } from '../core/endpoint.ts'
import type { Json } from '../json/json.ts'
import { GatewayError } from '../lib/error.ts'
import { unknownName } from '../lib/nearest.ts'
import type { RoutesFile } from './schemas/routes.ts'
import type { Path, Source } from './source.ts'

type Written = Pick<RoutesFile['virtual_models'][number], 'defaults' | 'overrides' | 'system'>

/** Fields that say which request it is, so that no operator sets them. */
const OF_CLIENTS: ReadonlySet<string> = new Set(['model', 'models', 'messages', 'stream'])
/** Field that every operation with `routed` reads beside those of its schema. */
const ROUTED = 'provider'

/** Reads the fields of one operation. Throws a GatewayError. */
interface Reader {
  readonly names: readonly string[]
  read(fields: Readonly<Json>): Readonly<Json>
}

/** Undefined where it sets nothing. `served`: operations of its targets. Throws a ConfigError for what none of them has. */
export function linkPresets(
  { defaults = {}, overrides = {}, system }: Written,
  served: ReadonlySet<string>,
  endpoints: readonly Endpoint[],
  source: Source,
  path: Path,
): ReadonlyMap<string, Preset> | undefined {
  if (system === undefined && Object.keys(defaults).length + Object.keys(overrides).length === 0) return undefined
  const readers = readersOf(served, endpoints)
  if (system !== undefined && !readers.has('chat')) {
    throw source.error('no target is a chat model, and only chats have a system prompt', [...path, 'system'], 'key')
  }
  const names = [...new Set([...readers.values()].flatMap(reader => reader.names))]
  checkNames(defaults, names, source, [...path, 'defaults'])
  checkNames(overrides, names, source, [...path, 'overrides'])
  const presets = new Map<string, Preset>()
  for (const [operation, reader] of readers) {
    presets.set(operation, {
      defaults: readBy(reader, defaults, source, [...path, 'defaults']),
      overrides: readBy(reader, overrides, source, [...path, 'overrides']),
      system: system !== undefined && operation === 'chat' ? [system] : [],
    })
  }
  return presets
}

/** Readers by operation: those of the client wire that names fields as operators do. */
function readersOf(served: ReadonlySet<string>, endpoints: readonly Endpoint[]): Map<string, Reader> {
  const readers = new Map<string, Reader>()
  for (const { operation, codec } of endpoints) {
    const { preset } = codec
    if (!operation || !preset || !served.has(operation.name) || readers.has(operation.name)) continue
    readers.set(operation.name, {
      names: [...preset.names, ...(operation.routed ? [ROUTED] : [])].filter(name => !OF_CLIENTS.has(name)),
      read(fields) {
        const { body, fields: own } = operation.routed?.(fields) ?? { body: fields, fields: {} }
        const removed = Object.fromEntries(Object.entries(fields).filter(([, value]) => value === null))
        return Object.assign(removed, preset.read(body as Json), own)
      },
    })
  }
  return readers
}

function checkNames(fields: Readonly<Json>, names: readonly string[], source: Source, path: Path): void {
  for (const name of Object.keys(fields)) {
    if (names.includes(name)) continue
    const message = OF_CLIENTS.has(name)
      ? `only clients set "${name}"; leave it out`
      : unknownName('field', name, names)
    throw source.error(message, [...path, name], 'key')
  }
}

function readBy(reader: Reader, fields: Readonly<Json>, source: Source, path: Path): Readonly<Json> {
  try {
    return reader.read(fields)
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    const at = (thrown.param ?? '').split(/[.[\]]+/).filter(step => step !== '')
    throw source.error(thrown.message, [...path, ...at])
  }
}
