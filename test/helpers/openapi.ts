/** Reads an OpenAPI document: its operations, their examples, and whether an answer is one that it declares. */
import type { ErrorObject } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'

export type Tree = { readonly [key: string]: Tree }

interface Example {
  readonly type: string
  readonly name: string
  readonly value: Record<string, unknown>
}

export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly examples: readonly Example[]
  /** Examples of parameters, by their place and name. */
  readonly parameters: readonly { readonly in: string; readonly name: string; readonly example?: unknown }[]
  readonly isOpen: boolean
  readonly statuses: readonly string[]
  readonly links: readonly string[]
}

/** The document, with what its answers must be like. */
export class OpenApi {
  readonly operations: readonly Operation[]
  readonly #document: Tree
  readonly #ajv: Ajv2020

  constructor(document: unknown) {
    this.#document = document as Tree
    this.#ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false, code: { optimize: false } })
    this.#ajv.addSchema(document as object, 'api')
    this.operations = Object.entries(this.#document.paths!).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, tree]) => operationOf(path, method, tree)),
    )
  }

  operation(id: string): Operation {
    return this.operations.find(one => one.id === id)!
  }

  /** Why the value is not of the schema at this place; undefined for one that is. */
  issue(place: readonly string[], value: unknown): string | undefined {
    const pointer = place.map(part => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
    const validate = this.#ajv.compile({ $ref: `api#/${pointer}` })
    if (validate(value)) return undefined
    const texts = (validate.errors as ErrorObject[])
      .slice(0, 5)
      .map(({ instancePath, message }) => `${instancePath} ${message}`)
    return `${texts.join('; ')}: ${JSON.stringify(value).slice(0, 600)}`
  }

  /** Why an answer is not one that its operation declares; undefined for one that is. */
  async answerIssue({ path, method }: Operation, response: Response): Promise<string | undefined> {
    const text = Buffer.from(await response.arrayBuffer())
    const { status } = response
    const at = ['paths', path, method, 'responses', String(status)]
    const declared = this.#at(at)
    if (!declared) return `the status ${status} is not declared: ${text.toString().slice(0, 300)}`
    const name = declared.$ref as unknown as string | undefined
    const place = name ? name.slice(2).split('/') : at
    const { content } = this.#at(place)!
    const type = response.headers.get('content-type')?.split(';')[0] ?? ''
    if (!content) return text.length === 0 ? undefined : `${status} has no body`
    if (!content[type]) return `${status} is not declared as ${type}`
    const schema = [...place, 'content', type, 'schema']
    if (type === 'application/json') return this.issue(schema, JSON.parse(text.toString()))
    if (type !== 'text/event-stream') return undefined
    const events = dataOf(text.toString())
    if (events.length === 0) return 'the stream is empty'
    return events.map(event => this.issue(schema, event)).find(Boolean)
  }

  #at(place: readonly string[]): Tree | undefined {
    return place.reduce<Tree | undefined>((tree, part) => tree?.[part], this.#document)
  }
}

/** Data of server-sent events, without the terminator. */
const dataOf = (text: string): unknown[] =>
  text
    .split(/\r?\n/)
    .filter(line => line.startsWith('data: ') && line !== 'data: [DONE]')
    .map(line => JSON.parse(line.slice('data: '.length)))

function operationOf(path: string, method: string, tree: Tree): Operation {
  const content = Object.entries(tree.requestBody?.content ?? {})
  const examples = content.flatMap(([type, { examples = {} }]) =>
    Object.entries(examples).map(([name, { value }]) => ({ type, name, value: value as Record<string, unknown> })),
  )
  return {
    id: tree.operationId as unknown as string,
    method,
    path,
    examples,
    parameters: tree.parameters as unknown as Operation['parameters'],
    isOpen: Array.isArray(tree.security) && (tree.security.length === 0 || Object.keys(tree.security[0]).length === 0),
    statuses: Object.keys(tree.responses!),
    links: Object.keys(tree.responses!['200']?.links ?? {}),
  }
}

/** The request that an example stands for. `ids`: values of parameters of the path. */
export function requestOf(
  { method, path, parameters }: Operation,
  example: Example | undefined,
  ids: Readonly<Record<string, string>> = {},
): { readonly path: string; readonly init: RequestInit } {
  const headers: Record<string, string> = {}
  const query = new URLSearchParams()
  let filled = path
  for (const { in: place, name, example } of parameters) {
    const value = ids[name] ?? example
    if (value === undefined) continue
    if (place === 'path') filled = filled.replace(`{${name}}`, encodeURIComponent(String(value)))
    if (place === 'query') query.set(name, String(value))
    if (place === 'header' && !/^(?:range|x-no-|x-source)/.test(name)) headers[name] = String(value)
  }
  const init: RequestInit = { method: method.toUpperCase(), headers, redirect: 'manual' }
  if (example?.type === 'multipart/form-data') init.body = formOf(example.value)
  else if (example) {
    headers['content-type'] = example.type
    init.body = JSON.stringify(example.value)
  }
  return { path: query.size > 0 ? `${filled}?${query}` : filled, init }
}

function formOf(value: Record<string, unknown>): FormData {
  const form = new FormData()
  for (const [name, field] of Object.entries(value)) {
    if (name === 'file') form.set(name, new Blob([String(field)]), 'audio.wav')
    else form.set(name, String(field))
  }
  return form
}
