/** Sends copies of requests to other models, and drops their answers (docs/rules.md#mirrors). */
import { setImmediate as turn } from 'node:timers/promises'
import { Cancellation } from '../core/cancel.ts'
import type { RouteRule } from '../core/catalog.ts'
import type { Codec, Encoder } from '../core/codec.ts'
import { Exchange } from '../core/exchange.ts'
import type { Op, Ops } from '../core/ops.ts'
import type { Services } from '../core/ports.ts'
import { pump, type Sink } from '../core/pump.ts'
import type { Route } from '../core/snapshot.ts'
import { isObject } from '../json/json.ts'
import { Form, Upload } from '../lib/body.ts'
import { errors } from '../lib/error.ts'
import { perObject } from '../lib/per-object.ts'
import { atMost } from '../lib/timer.ts'
import { meters } from '../metering/meter.ts'
import { isCopy, markCopy } from './copy.ts'

/** Copies of one process at a time; beyond them requests are not copied. */
const MAX_COPIES = 16
/** Larger bodies are not copied; JSON has the bound of `ExchangeInput.isLarge`. */
const MAX_COPIED_BYTES = 256 * 1024
/** Fields by which a client chooses models and providers itself. */
const OF_ROUTING = ['models', 'provider', 'routing']
/** Time for aborted copies to be charged, in milliseconds. */
const ENDING_MS = 5000

type Sent = Pick<Services, 'issuerKeys' | 'keys' | 'policies' | 'metrics' | 'log' | 'random'>

/** The copies of one process. They pass the chain of their request, paid by the operator. */
export class Copies {
  readonly #services: Sent
  readonly #running = new Map<Cancellation, Promise<void>>()
  #operator: Promise<string> | undefined

  constructor(services: Sent) {
    this.#services = services
  }

  /** Begins a copy of a request where chance and bounds allow it. Never throws, and takes no time of the request. */
  draw(ex: Exchange, rule: RouteRule): void {
    const { metrics, random } = this.#services
    if (random() * 100 >= rule.mirror!.percent) return
    const route = ex.snapshot.routes().find(({ endpoint }) => endpoint === ex.endpoint)
    if (!route || this.#running.size >= MAX_COPIES || !isCopied(ex)) {
      metrics.ruleApplied(rule.name, 'mirror_skipped')
      return
    }
    metrics.ruleApplied(rule.name, 'mirror')
    const signal = new Cancellation()
    ex.snapshot.retain()
    const { request, input, caller } = ex
    const source = {
      id: ex.id,
      snapshot: ex.snapshot,
      request: withOwnFiles(request!),
      input: { values: input.values, native: input.native },
    }
    const copy = turn()
      .then(() => this.#send(route, rule, { ...source, access: caller.access }, signal))
      .catch((err: unknown) => this.#services.log.warn({ err, rule: rule.name }, 'copy not sent'))
      .finally(() => {
        ex.snapshot.release()
        this.#running.delete(signal)
      })
    this.#running.set(signal, copy)
  }

  /** Ends the copies that run. Resolves when they are charged, or after a bounded time. */
  async end(): Promise<void> {
    if (this.#running.size === 0) return
    for (const signal of this.#running.keys()) signal.abort(errors.shuttingDown())
    await atMost(ENDING_MS, Promise.all(this.#running.values()), undefined)
  }

  async #send(route: Route, rule: RouteRule, source: Source, signal: Cancellation): Promise<void> {
    const { keys, policies, log } = this.#services
    this.#operator ??= this.#services.issuerKeys.keyOfOperator()
    const hash = await this.#operator.catch((thrown: unknown) => {
      this.#operator = undefined
      throw thrown
    })
    const principal = await keys.find(hash)
    // An operator may revoke the key.
    if (!principal) this.#services.metrics.ruleApplied(rule.name, 'mirror_skipped')
    if (!principal || signal.aborted) return
    const { codec } = route.endpoint
    const endpoint = Object.assign({}, route.endpoint, { codec: copying(codec, source, rule.mirror!.to) })
    const ex = new Exchange({
      meters,
      endpoint,
      signal,
      snapshot: source.snapshot,
      headers: { 'x-request-id': source.id },
      query: '',
      body: async () => ({ value: undefined, values: source.input.values }),
    })
    markCopy(ex)
    ex.caller.principal = principal
    ex.caller.policy = await policies.of(principal.orgId)
    // Sends copies only to providers that the request itself may reach.
    ex.caller.access = source.access
    ex.caller.labels = { endUser: undefined, tags: new Map([['mirror', rule.name]]) }
    await pump({ endpoint, chain: route.chain }, ex, nowhere)
    await route.chain.finish(ex, (filter, err) => log.error({ filter, err }, 'filter finish failed'))
  }
}

/** A request that is copied. */
interface Source {
  readonly id: string
  readonly snapshot: Exchange['snapshot']
  readonly request: Ops[Op]
  readonly input: Pick<Exchange['input'], 'values' | 'native'>
  readonly access: Exchange['caller']['access']
}

/** Copies the files of a request, whose bytes are released once its answer begins. */
function withOwnFiles(request: Ops[Op]): Ops[Op] {
  const copy = Object.assign({}, request)
  for (const [name, value] of Object.entries(copy)) {
    Reflect.set(copy, name, Array.isArray(value) ? value.map(withOwnFile) : withOwnFile(value))
  }
  return copy
}

function withOwnFile(value: unknown): unknown {
  if (value instanceof Upload) return new Upload([...value.pieces], value.contentType, value.extension)
  if (!isObject(value) || !(value.file instanceof Upload)) return value
  return Object.assign({}, value, { file: withOwnFile(value.file) })
}

/** False for what outlives its request or costs nothing, for large bodies, and for organizations that keep no data. */
function isCopied(ex: Exchange): boolean {
  const { operation, endpoint, input, caller } = ex
  if (isCopy(ex) || operation.job || operation.isSession || endpoint.counts || caller.policy?.keepsReplies === false) {
    return false
  }
  const length = Number(ex.header('content-length') ?? (input.value instanceof Form ? Number.POSITIVE_INFINITY : 0))
  return !input.isLarge && length <= MAX_COPIED_BYTES
}

/** Reads the request that is there already, for another model, and writes nothing. */
const copying = (codec: Codec, { request, input }: Source, model: string): Codec =>
  Object.assign({}, codec, {
    decode(_body: unknown, ex: Exchange): Ops[Op] {
      ex.input.native = input.native
      const copy: Ops[Op] = Object.assign({}, request, { model })
      for (const name of OF_ROUTING) Reflect.deleteProperty(copy, name)
      return copy
    },
    encoder: () => silent,
  })

const silent: Encoder = {
  contentType: 'application/octet-stream',
  write: () => undefined,
  end: () => '',
  fail: () => '',
}
const nowhere: Sink = {
  head: () => undefined,
  write: () => undefined,
  end: () => undefined,
  destroy: () => undefined,
}

/** The copies of a process; they outlive reloads. */
export const copiesOf = perObject((services: Services) => new Copies(services))
