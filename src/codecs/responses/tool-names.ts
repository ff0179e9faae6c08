/**
 * Converts tools of a Responses body to functions, which every wire supports. A custom tool becomes a function with one
 * string, `input`; tools of a namespace get a combined name; a search for tools that the client runs is a function of that
 * name. Calls are returned under the client's names.
 */

import type { Tool } from '../../core/chat-request.ts'
import type { Exchange } from '../../core/exchange.ts'
import { isObject, type Json, listIn, textIn } from '../../json/json.ts'
import { textKey } from '../../json/text-key.ts'
import { errors } from '../../lib/error.ts'

/** A tool's name and namespace in the client's request. */
export interface Known {
  readonly name: string
  readonly namespace?: string | undefined
  readonly custom?: true
  /** The search for tools that the client runs. */
  readonly search?: true
}

const MAX_NAME_CHARACTERS = 64
/** All names of a provider's search tool, which has versions. */
const SEARCHES = /^web_search(?:_|$)/
/** Whether a tool's type is the provider's search. */
export const isSearch = (type: unknown): boolean => typeof type === 'string' && SEARCHES.test(type)
const CUSTOM = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
  additionalProperties: false,
}

const QUERY = { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] }
/** A search for tools that the client runs. */
const isOwnSearch = ({ type, execution }: Json): boolean => type === 'tool_search' && execution === 'client'

const noted = new WeakMap<Exchange, ToolNames>()

/** For the answer of the exchange. */
export const noteToolNames = (ex: Exchange, names: ToolNames): void => void noted.set(ex, names)
/** The noted names; the request of the exchange must have been decoded. */
export const toolNamesOf = (ex: Exchange): ToolNames => noted.get(ex)!

/** The tools of one request, under the names that providers receive. */
export class ToolNames {
  readonly tools: Tool[] = []
  readonly #known = new Map<string, Known>()
  readonly #flat = new Map<string, string>()
  /** The name that providers know of the search for tools. */
  search = 'tool_search'
  /** Path of the first tool that only providers of this wire can run. */
  only: string | undefined
  #tried = 0

  /** `input`: with what searches of the client found. Throws a 400 for a malformed tool. */
  constructor(tools: unknown, input?: unknown) {
    const given = listIn(tools).filter(isObject)
    // Plain names stay as they are.
    for (const tool of given) if (tool.type === 'function' || tool.type === 'custom') this.#add(tool, undefined)
    for (const [i, tool] of given.entries()) this.#read(tool, `tools[${i}]`)
    let added: Json | undefined
    for (const [i, item] of listIn(input).entries()) {
      if (!isObject(item)) continue
      if (item.type !== 'tool_search_output') added ??= searchIn(item.tools)
      else
        for (const [j, tool] of listIn(item.tools).entries())
          if (isObject(tool)) this.#find(tool, `input[${i}].tools[${j}]`)
    }
    // Only providers of this wire read added tools, but a search has a price.
    if (added && !this.tools.some(({ type }) => type === 'web_search')) this.tools.push(searchOf(added))
  }

  /** The name at providers. */
  flat(name: string, namespace: unknown): string {
    return this.#flat.get(keyOf(name, textIn(namespace))) ?? name
  }

  known(flat: string): Known {
    return this.#known.get(textKey(flat)) ?? { name: flat }
  }

  /** Adds what is not there yet: the same tool may be found twice. */
  #find(tool: Json, at: string): void {
    const isNew = (name: unknown, namespace?: string) => !this.#flat.has(keyOf(textIn(name) ?? '', namespace))
    if (tool.type === 'namespace') {
      const left = innerOf(tool, at).filter(({ name }) => isNew(name, textIn(tool.name)))
      if (left.length > 0) this.#read({ ...tool, tools: left }, at)
    } else if (!isCalled(tool) || isNew(tool.name)) {
      this.#add(tool, undefined)
      this.#read(tool, at)
    }
  }

  #read(tool: Json, at: string): void {
    if (tool.type === 'namespace') {
      for (const [j, inner] of innerOf(tool, at).entries()) {
        this.#add(inner, textIn(tool.name))
        this.#push(inner, textIn(tool.name), `${at}.tools[${j}]`)
      }
    } else if (isCalled(tool)) this.#push(tool, undefined, at)
    else if (isSearch(tool.type)) this.tools.push(searchOf(tool))
    else if (isOwnSearch(tool)) {
      this.search = this.#unique('tool_search')
      this.#known.set(this.search, { name: 'tool_search', search: true })
      this.#function({ parameters: QUERY, ...tool }, this.search, at)
    } else if (textIn(tool.type) !== undefined && at.startsWith('tools')) this.only ??= `${at}.type`
    else {
      const where = `${at}.type`
      throw errors.unsupported(`${where}: a tool that a search found must be function, custom or namespace.`, where)
    }
  }

  #add(tool: Json, namespace: string | undefined): void {
    const name = textIn(tool.name)
    if (name === undefined || this.#flat.has(keyOf(name, namespace))) return
    const flat = namespace === undefined ? name : this.#unique(`${namespace}__${name}`)
    this.#flat.set(keyOf(name, namespace), flat)
    this.#known.set(textKey(flat), { name, namespace, ...(tool.type === 'custom' && { custom: true }) })
  }

  /** Legal on every wire. Tries each number once, so that colliding names cost no more than others. */
  #unique(name: string): string {
    const legal = name.slice(0, MAX_NAME_CHARACTERS).replace(/[^\w-]/g, '_')
    let made = legal
    while (this.#known.has(made)) {
      const suffix = `_${++this.#tried}`
      made = legal.slice(0, MAX_NAME_CHARACTERS - suffix.length) + suffix
    }
    return made
  }

  #push(tool: Json, namespace: string | undefined, at: string): void {
    const name = textIn(tool.name)
    if (name === undefined) throw errors.invalidField(`${at}.name`, 'is required')
    const flat = this.flat(name, namespace)
    const description = textIn(tool.description)
    if (tool.type === 'custom') {
      const described = [description, grammarOf(tool.format)].filter(Boolean).join('\n\n')
      this.tools.push({
        type: 'function',
        function: { name: flat, ...(described && { description: described }), parameters: CUSTOM },
      })
      return
    }
    this.#function(tool, flat, at)
  }

  #function(tool: Json, flat: string, at: string): void {
    const description = textIn(tool.description)
    const { parameters, strict } = tool
    if (parameters != null && !isObject(parameters)) {
      throw errors.invalidField(`${at}.parameters`, 'must be object')
    }
    this.tools.push({
      type: 'function',
      function: {
        name: flat,
        ...(description && { description }),
        ...(parameters && { parameters }),
        ...(typeof strict === 'boolean' && { strict }),
      },
    })
  }
}

/** A tool that runs at the client. */
const isCalled = ({ type }: Readonly<Json>): boolean => type === 'function' || type === 'custom'

/** The tools of a namespace. Throws for one that runs elsewhere, also where its name is taken. */
function innerOf(tool: Json, at: string): Json[] {
  return listIn(tool.tools).map((inner, j) => {
    if (isObject(inner) && isCalled(inner)) return inner
    const where = `${at}.tools[${j}].type`
    throw errors.invalidField(where, 'must be "function" or "custom"')
  })
}

const keyOf = (name: string, namespace: string | undefined): string => textKey(`${namespace ?? ''}\0${name}`)

/** A grammar as text: a function's schema cannot express it. */
function grammarOf(format: unknown): string | undefined {
  if (!isObject(format) || format.type !== 'grammar') return undefined
  return `The input follows this ${textIn(format.syntax) ?? ''} grammar:\n${textIn(format.definition) ?? ''}`
}

/** The first search among tools, and the tools in those. */
function searchIn(tools: unknown): Json | undefined {
  for (const tool of listIn(tools).filter(isObject)) {
    const found = isSearch(tool.type) ? tool : searchIn(tool.tools)
    if (found) return found
  }
  return undefined
}

function searchOf({ search_context_size: size, user_location: place, filters }: Json): Tool {
  const tool: Extract<Tool, { type: 'web_search' }> = { type: 'web_search' }
  if (size === 'low' || size === 'medium' || size === 'high') tool.search_context_size = size
  if (isObject(place)) {
    const known = ['city', 'region', 'country', 'timezone'].flatMap(name =>
      textIn(place[name]) === undefined ? [] : [[name, place[name]]],
    )
    tool.user_location = Object.fromEntries(known)
  }
  const domains = isObject(filters) ? listIn(filters.allowed_domains) : []
  const names = domains.filter(domain => typeof domain === 'string')
  if (names.length > 0) tool.allowed_domains = names
  return tool
}
