/** Builds the routing query of an exchange whose input has been read. */
import type { Preset } from '../core/catalog.ts'
import type { Exchange } from '../core/exchange.ts'
import { catalogOf } from '../core/policy.ts'
import { isObject, type Json } from '../json/json.ts'
import { Form } from '../lib/body.ts'
import { RequestQuery, type RoutedRequest } from '../routing/query.ts'
import { sessionName } from '../routing/session-affinity.ts'
import { isCopy } from './copy.ts'

/** Its session is that of the headers or of the request; `x-no-fallback: true` forbids other targets. */
export class ExchangeQuery extends RequestQuery {
  readonly isCopy: boolean
  readonly #ex: Exchange

  constructor(ex: Exchange) {
    const request = ex.request!
    const session = sessionName(ex.http.headers, ex.operation, request)
    super(ex, catalogOf(ex), request, session, ex.header('x-no-fallback') !== 'true')
    this.#ex = ex
    this.isCopy = isCopy(ex)
  }

  /** Keeps what was measured of the request since it was read. */
  reread(preset: Preset): RoutedRequest | undefined {
    const { endpoint, input } = this.#ex
    if (!endpoint.codec.preset || endpoint.codec.preset.isCanonical) return undefined
    const body = bodyWith(preset, input.value)
    if (!body) return undefined
    const read: Json = Object.assign({} as Json, this.#ex.decoded(body, endpoint.codec))
    for (const [name, value] of Object.entries(this.request)) {
      if (!(name in preset.overrides)) read[name] ??= value
    }
    return read as RoutedRequest
  }
}

/** The body of a client with an operator's fields; undefined for one of bytes. */
function bodyWith({ defaults, overrides }: Preset, value: unknown): Json | Form | undefined {
  if (value instanceof Form) return formWith(defaults, overrides, value)
  if (!isObject(value)) return undefined
  const body = Object.assign({}, value)
  for (const [name, own] of Object.entries(defaults)) body[name] ??= own
  return Object.assign(body, overrides)
}

/** Lists stand as `name[]` or as repeated texts. */
function formWith(defaults: Readonly<Json>, overrides: Readonly<Json>, given: Form): Form {
  const form = new Form()
  const isOf = (name: string, field: string) => name === field || name.startsWith(`${field}[`)
  for (const [name, texts] of given.texts) {
    if (!Object.keys(overrides).some(field => isOf(name, field))) form.texts.set(name, texts)
  }
  for (const [name, files] of given.files) form.files.set(name, files)
  const names = [...given.texts.keys(), ...given.files.keys()]
  const left = Object.entries(defaults).filter(([field]) => !names.some(name => isOf(name, field)))
  for (const [field, value] of [...left, ...Object.entries(overrides)]) {
    const items = Array.isArray(value) ? value : value === null ? [] : [value]
    for (const item of items) form.addText(field, typeof item === 'string' ? item : JSON.stringify(item))
  }
  return form
}
