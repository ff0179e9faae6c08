/** The OpenAPI document of the public API: endpoints as they are served, with the schemas that check their requests. */
import type { Endpoint } from '../core/endpoint.ts'
import type { JsonSchema, Schema } from '../core/schema.ts'
import { isObject } from '../json/json.ts'
import { errorAnswer, errorName, knownStatuses } from './errors.ts'
import { binary, type Example, nameOf, type Parameter, type Row } from './row.ts'
import { rows } from './rows/index.ts'

/** Components by their names. */
class Components {
  readonly schemas: Record<string, JsonSchema> = {}
  readonly #sources = new Map<string, JsonSchema>()

  /** The schema as it stands in the document. Throws for two schemas of one name. */
  of(json: JsonSchema, name = nameOf(json)): JsonSchema {
    if (name === undefined) return this.#plain(json)
    const known = this.#sources.get(name)
    if (known === undefined) {
      this.#sources.set(name, json)
      // Takes its place in the order before what it holds.
      this.schemas[name] = {}
      this.schemas[name] = this.#plain(json)
    } else if (known !== json) throw new Error(`two schemas have the name ${name}`)
    return { $ref: `#/components/schemas/${name}` }
  }

  /** Without keywords of the dialect, and without those that say nothing. */
  #plain(json: JsonSchema): JsonSchema {
    const { discriminator: _, unit: __, additionalProperties: others, required, ...rest } = json
    const plain: Record<string, unknown> = rest
    if (Array.isArray(required) && required.length > 0) plain.required = required
    if (others === false) plain.additionalProperties = false
    else if (isObject(others)) plain.additionalProperties = this.of(others)
    if (isObject(json.items)) plain.items = this.of(json.items)
    if (isObject(json.not)) plain.not = this.of(json.not)
    if (isObject(json.properties)) {
      plain.properties = Object.fromEntries(
        Object.entries(json.properties).map(([name, member]) => [name, this.of(member as JsonSchema)]),
      )
    }
    for (const union of ['anyOf', 'oneOf', 'allOf']) {
      const members = json[union]
      if (Array.isArray(members)) plain[union] = members.map((member: JsonSchema) => this.of(member))
    }
    return plain
  }
}

/** Facts of the process that the document depends on. */
export interface Settings {
  readonly version: string
  /** Whether realtime sessions are served. */
  readonly realtime: boolean
}

const TITLE = 'Model Gateway'
const ABOUT =
  'One OpenAI-compatible API in front of every model provider, which the clients of Anthropic, Google, Cohere and the ' +
  'AI SDK can use as well. The models `demo`, `demo-embed` and so on are simulated and free, where the operator serves them.'

/** The row that describes an endpoint; undefined for one that only refuses. */
export const rowOf = ({ method, path }: Endpoint): Row | undefined => rows[`${method} ${path}`]

/** Builds the document. */
export function documentOf(endpoints: readonly Endpoint[], settings: Settings): object {
  const components = new Components()
  const responses: Record<string, object> = {}
  const paths: Record<string, Record<string, object>> = {}
  const tags = new Set<string>()
  for (const status of knownStatuses) {
    responses[errorName('Error', status)] = errorAnswer('Error', status, ({ json }) => components.of(json))
  }
  for (const endpoint of endpoints) {
    const row = rowOf(endpoint)
    if (!row || (row.needs === 'realtime' && !settings.realtime)) continue
    tags.add(row.tag)
    const path = endpoint.path.replaceAll('{+', '{')
    paths[path] ??= {}
    paths[path][endpoint.method.toLowerCase()] = new Operation(endpoint, row, components, responses).toJSON()
  }
  return {
    openapi: '3.1.0',
    info: { title: TITLE, version: settings.version, description: ABOUT },
    servers: [{ url: '/' }],
    tags: [...tags].map(name => ({ name })),
    security: [{ bearer: [] }, { apiKey: [] }],
    paths,
    components: {
      schemas: components.schemas,
      responses,
      headers: answerHeaders,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A key of this gateway.' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'A key of this gateway.' },
        googleKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-goog-api-key',
          description: "A key of this gateway, as Google's clients send it.",
        },
      },
    },
  }
}

/** One operation, with the components that it refers to. */
class Operation {
  readonly #endpoint: Endpoint
  readonly #row: Row
  readonly #components: Components
  readonly #responses: Record<string, object>

  constructor(endpoint: Endpoint, row: Row, components: Components, responses: Record<string, object>) {
    this.#endpoint = endpoint
    this.#row = row
    this.#components = components
    this.#responses = responses
  }

  toJSON(): object {
    const { id, tag, summary, description } = this.#row
    const body = this.#body()
    return {
      operationId: id,
      tags: [tag],
      summary,
      ...(description !== undefined && { description }),
      ...this.#security(),
      parameters: this.#parameters(),
      ...(body && { requestBody: { required: true, content: body } }),
      responses: { ...this.#answers(), ...this.#errors() },
    }
  }

  #security(): object {
    const { open, codec } = this.#endpoint
    if (open === true) return { security: [] }
    const google = codec.credentials && codec.wire !== 'realtime' ? [{ googleKey: [] }] : []
    const { isPublic } = this.#row
    if (google.length === 0 && !isPublic) return {}
    return { security: [...(isPublic ? [{}] : []), { bearer: [] }, { apiKey: [] }, ...google] }
  }

  #parameters(): object[] {
    const { headers, query = {}, path = {} } = this.#row
    const all = (where: string, given: Readonly<Record<string, Parameter>>) =>
      Object.entries(given).map(([name, { description, schema = { type: 'string' }, required, example }]) => ({
        name,
        in: where,
        description,
        ...((required || where === 'path') && { required: true }),
        schema: where === 'path' ? { minLength: 1, ...schema } : schema,
        ...(example !== undefined && { example }),
      }))
    return [
      ...all('path', path),
      ...all('query', query),
      ...all('header', { ...headersOf(this.#endpoint), ...headers }),
    ]
  }

  /** Contents by type; undefined for an operation without a body. */
  #body(): Record<string, object> | undefined {
    const { body: name, bodies, files, examples = {} } = this.#row
    const { codec, body: types = 'json' } = this.#endpoint
    const content: Record<string, object> = {}
    for (const [type, schema] of Object.entries(bodies ?? {})) {
      content[type] = { schema: this.#schema(schema), ...withExamples(examples) }
    }
    const { requestSchema } = codec
    if (!name || !requestSchema) return bodies ? content : undefined
    const isOfForm = ([, { value }]: [string, Example]) => files?.some(file => typeof fieldOf(value, file) === 'string')
    const all = Object.entries(examples)
    if (types === 'json' || types.includes('json')) {
      const own = Object.fromEntries(all.filter(one => !isOfForm(one)))
      content['application/json'] = { schema: this.#components.of(requestSchema, name), ...withExamples(own) }
    }
    if (types.includes('multipart') && types !== 'json') {
      const own = Object.fromEntries(all.filter(one => isOfForm(one)))
      content['multipart/form-data'] = { schema: this.#form(requestSchema, files ?? []), ...withExamples(own) }
    }
    return content
  }

  /** The fields of a form: those of a JSON body, and files. */
  #form(requestSchema: JsonSchema, files: readonly string[]): JsonSchema {
    const source = this.#row.form?.json ?? requestSchema
    const { properties, required = [] } = source as { properties: object; required?: readonly string[] }
    const fields = { ...properties, ...Object.fromEntries(files.map(name => [name, binary.json])) }
    return this.#components.of({ type: 'object', properties: fields, required })
  }

  #schema(schema: Schema<unknown>): JsonSchema {
    return this.#components.of(schema.json)
  }

  #answers(): Record<string, object> {
    const headers = Object.fromEntries(
      answerHeadersOf(this.#endpoint).map(name => [name, { $ref: `#/components/headers/${name}` }]),
    )
    return Object.fromEntries(
      Object.entries(this.#row.answers).map(([status, { description, content, example, links }]) => [
        status,
        {
          description,
          headers,
          ...(content && { content: this.#contents(content, example) }),
          ...(links && { links: Object.fromEntries(links.map(id => [id, linkTo(id)])) }),
        },
      ]),
    )
  }

  #contents(content: Readonly<Record<string, Schema<unknown>>>, example: unknown): object {
    return Object.fromEntries(
      Object.entries(content).map(([type, schema]) => [
        type,
        type === 'text/event-stream'
          ? { schema: eventOf(this.#schema(schema)) }
          : { schema: this.#schema(schema), ...(type === 'application/json' && example !== undefined && { example }) },
      ]),
    )
  }

  #errors(): Record<string, object> {
    const { errors: form = 'Error', answers } = this.#row
    const own = this.#statuses().filter(status => !(status in answers))
    return Object.fromEntries(
      own.map(status => {
        const name = errorName(form, status)
        this.#responses[name] ??= errorAnswer(form, status, schema => this.#schema(schema))
        return [status, { $ref: `#/components/responses/${name}` }]
      }),
    )
  }

  #statuses(): number[] {
    const { open, serve, bodyLimit } = this.#endpoint
    const body = bodyLimit > 0 ? [408, 413, 415] : []
    const model = serve === 'upstream' ? [402, 502, 504] : []
    const caller = open === true ? [] : [401, 403, 404, 410]
    const all = [400, 414, 429, 431, 500, 503, 529, ...caller, ...body, ...model, ...(this.#row.also ?? [])]
    return [...new Set(all)].sort((a, b) => a - b)
  }
}

const withExamples = (examples: Readonly<Record<string, Example>>): object =>
  Object.keys(examples).length > 0 ? { examples } : {}

const fieldOf = (value: unknown, name: string): unknown => (value as Readonly<Record<string, unknown>> | null)?.[name]

const linkTo = (operationId: string): object => ({ operationId, parameters: { id: '$response.body#/id' } })

/**
 * One event of a stream: for readers that take its data as JSON, and for those that take its fields. Draft 2020-12 says
 * what is in a text by `contentSchema`.
 */
function eventOf(payload: JsonSchema): JsonSchema {
  const data = { type: 'string', contentMediaType: 'application/json', contentSchema: payload }
  const fields = { event: { type: 'string' }, data: { anyOf: [{ const: '[DONE]' }, data] } }
  return { anyOf: [payload, { type: 'object', properties: fields, required: ['data'] }] }
}

/** Headers of requests that run a model. */
const inference: Readonly<Record<string, Parameter>> = {
  'x-session-id': { description: 'Keeps the requests of a session with one provider.' },
  'x-source': { description: 'Address of the app that the request counts for.', example: 'https://app.example.com' },
  'x-no-fallback': { description: '`true` tries one provider alone.', example: 'true' },
  'x-no-cache': { description: '`true` skips the response cache.', example: 'true' },
  'x-request-id': { description: 'Id that the answer and the log repeat.' },
}

/** The usual request headers of an endpoint. */
export const headersOf = ({ serve }: Endpoint): Readonly<Record<string, Parameter>> =>
  serve === 'upstream' ? inference : {}

const text = { schema: { type: 'string' } }
const number = { schema: { type: 'integer' } }

/** Headers of answers, as components. */
export const answerHeaders = {
  'x-request-id': { description: 'Id of the request.', ...text },
  'retry-after': { description: 'Seconds to wait.', ...number },
  'ratelimit-policy': { description: 'The limit of requests, as a structured field.', ...text },
  ratelimit: { description: 'What is left of the limit, as a structured field.', ...text },
  'ratelimit-limit': { description: 'Requests of a window.', ...number },
  'ratelimit-remaining': { description: 'Requests that are left in the window.', ...number },
  'ratelimit-reset': { description: 'Seconds until the window ends.', ...number },
  'x-gateway-provider': { description: 'The provider that answers.', ...text },
  'x-gateway-model': { description: 'The model that answers.', ...text },
  'x-gateway-cost': { description: 'Cost in USD.', ...text },
  'x-gateway-cache': { description: '`HIT` for a replay from the cache.', ...text },
} as const

/** Names of the headers of an answer that is no error. */
export const answerHeadersOf = ({ serve, open }: Endpoint): readonly (keyof typeof answerHeaders)[] => {
  if (open) return ['x-request-id']
  const limits = ['ratelimit-policy', 'ratelimit', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'] as const
  const all = ['x-request-id', ...limits] as const
  return serve === 'upstream'
    ? [...all, 'x-gateway-provider', 'x-gateway-model', 'x-gateway-cost', 'x-gateway-cache']
    : all
}
