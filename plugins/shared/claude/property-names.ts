/** Names of the parameters of a tool, of which Claude's providers take letters, digits, `_`, `.` and `-` at the root. */
import { type ChatRequest, type Decoder, type Event, isObject, type Json, listIn } from '../../../src/plugin.ts'
import { toolSchema } from '../tool-schema.ts'
import { UniqueNames } from './unique-names.ts'

const TAKEN = /^[a-zA-Z0-9_.-]{1,64}$/
const FOREIGN = /[^a-zA-Z0-9_.-]/g
const MAX_NAME_CHARACTERS = 64

interface WireSchema {
  readonly schema: Json
  /** The client's names by those of the wire; absent where they are the same. */
  readonly names?: ReadonlyMap<string, string>
}

const schemas = new WeakMap<Json, WireSchema>()

/** The schema of a tool with the names of the wire. */
export function wireSchemaOf(parameters: Json | undefined): WireSchema {
  const known = parameters && schemas.get(parameters)
  if (known) return known
  const made = renamed(toolSchema(parameters))
  if (parameters) schemas.set(parameters, made)
  return made
}

function renamed(schema: Json): WireSchema {
  const { properties } = schema
  const own = isObject(properties) ? Object.keys(properties) : []
  if (own.every(name => TAKEN.test(name))) return { schema }
  const wireNames = new Map<string, string>()
  const names = new Map<string, string>()
  const unique = new UniqueNames(spelled)
  for (const name of own) if (TAKEN.test(name)) unique.unique(name)
  for (const name of own) {
    if (TAKEN.test(name)) continue
    const wire = unique.unique(name)
    wireNames.set(name, wire)
    names.set(wire, name)
  }
  const wireName = (name: unknown) => wireNames.get(name as string) ?? name
  const members = Object.entries(properties as Json).map(([name, value]) => [wireName(name), value])
  const entries = Object.entries(schema).map(([key, value]) => {
    if (key === 'properties') return [key, Object.fromEntries(members)]
    return [key, key === 'required' ? listIn(value).map(wireName) : value]
  })
  return { schema: Object.fromEntries(entries), names }
}

function spelled(name: string, count: number): string {
  const suffix = count === 1 ? '' : `_${count}`
  return (name.slice(0, MAX_NAME_CHARACTERS - suffix.length).replace(FOREIGN, '_') || '_') + suffix
}

/** Gives the arguments of calls the names that the tools of `request` have. */
export function withClientProperties(decoder: Decoder, request: Readonly<ChatRequest> | undefined): Decoder {
  const tools = new Map<string, ReadonlyMap<string, string>>()
  for (const tool of request?.tools ?? []) {
    const names = tool.type === 'function' ? wireSchemaOf(tool.function.parameters).names : undefined
    if (names && tool.type === 'function') tools.set(tool.function.name, names)
  }
  if (tools.size === 0) return decoder
  const calls = new Map<string, ArgumentNames | undefined>()
  const read = (events: Event[]): Event[] => {
    for (const event of events) {
      if (event.type !== 'tool') continue
      const call = `${event.choice} ${event.index}`
      const names = event.name === undefined ? undefined : tools.get(event.name)
      if (event.name !== undefined && !calls.has(call)) calls.set(call, names && new ArgumentNames(names))
      const own = calls.get(call)
      if (own && event.args !== undefined) event.args = own.push(event.args)
    }
    return events
  }
  const { frame, end } = decoder
  decoder.frame = given => read(frame.call(decoder, given))
  decoder.end = () => read(end.call(decoder))
  return decoder
}

/** Replaces names of the outermost object in JSON text that comes in pieces. */
class ArgumentNames {
  readonly #names: ReadonlyMap<string, string>
  #depth = 0
  #isText = false
  #isEscaped = false
  #nameFollows = false
  /** A name so far, with its quotes. */
  #name: string | undefined

  constructor(names: ReadonlyMap<string, string>) {
    this.#names = names
  }

  push(piece: string): string {
    let out = ''
    for (const char of piece) {
      if (this.#name === undefined && !(char === '"' && !this.#isText && this.#nameFollows)) out += char
      else this.#name = (this.#name ?? '') + char
      if (!this.#isText) this.#outside(char)
      else if (this.#isEscaped) this.#isEscaped = false
      else if (char === '\\') this.#isEscaped = true
      else if (char === '"') {
        this.#isText = false
        if (this.#name !== undefined) out += this.#clientName(this.#name)
        this.#name = undefined
      }
    }
    return out
  }

  #outside(char: string): void {
    if (char === '"') this.#isText = true
    else if (char === '{' || char === '[') this.#nameFollows = ++this.#depth === 1 && char === '{'
    else if (char === '}' || char === ']') this.#depth--
    else if (char === ',') this.#nameFollows = this.#depth === 1
    else if (char === ':') this.#nameFollows = false
  }

  #clientName(text: string): string {
    const name = this.#names.get(text.slice(1, -1))
    return name === undefined ? text : JSON.stringify(name)
  }
}
