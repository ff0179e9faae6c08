/** Encodes the canonical request to the target's wire. Only prepares: the terminal sends and decodes. */

import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import type { Op, Ops } from '../../core/ops.ts'
import type { RequestEncoding } from '../../core/outbound.ts'
import type { Reply } from '../../core/reply.ts'
import { s } from '../../core/schema.ts'
import { type FanOut, nativeFormOf, type Target, type Translator } from '../../core/translator.ts'
import type { NativeRequest, RequestPart, WireRequest } from '../../core/wire.ts'
import { excerptOf, isObject, type Json, textIn } from '../../json/json.ts'
import { weigh } from '../../json/size.ts'
import { errors, GatewayError } from '../../lib/error.ts'
import { isPublicUrl } from './addresses.ts'
import { Audio } from './audio.ts'
import { Files, fileAddressesIn } from './files.ts'
import { Identities } from './identities.ts'
import { addressesIn, Images } from './images.ts'
import { forTarget } from './media-lease.ts'
import { carryPreset } from './preset.ts'
import { applyQuirks } from './quirks.ts'

/** Characters of all requests that stand for one: each repeats what they do not share out. */
const MAX_REPEATED_CHARACTERS = 128 * 1024 * 1024

/** Fills `Exchange.outbound`. Throws 400 for what the target's wire cannot carry. */
export const translate: FilterFactory<object> = {
  name: 'translate',
  options: s.object({}),
  needs: ['target'],
  gives: ['outbound'],
  create(_options, services) {
    const images = new Images(services)
    const audio = new Audio(services)
    const hosts = new PrivateHosts()
    const files = new Files(services)
    const means = { images, files, identities: new Identities(services) }
    return {
      handle(ex, next) {
        const target = ex.target!
        refuseForeign(ex, target)
        refuseReferences(ex.request!, target)
        ex.outbound.begin()
        const inlines = hosts.inlines(ex, target)
        const fetched = audio.fetched(ex, target) ?? files.fetched(ex, target, inlines)
        if (fetched) return fetchedFirst(fetched, ex, target, means, inlines, next)
        return translated(ex, target, means, inlines, next)
      },
      finish(ex) {
        images.release(ex)
        audio.release(ex)
        files.release(ex)
      },
    }
  },
}

type Next = () => Promise<Reply>

/** Services for encoding: media fetched for the requests, and identities. */
interface Means {
  readonly images: Images
  readonly files: Files
  readonly identities: Identities
}

// No closures: each would cost a context of every request, which most do not need.
async function fetchedFirst(
  fetched: Promise<void>,
  ex: Exchange,
  target: Target,
  means: Means,
  inlines: boolean,
  next: Next,
) {
  await fetched
  return ex.step(() => translated(ex, target, means, inlines, next))
}

/** Images that stand at addresses come as data to targets that take no others. `inlines`: all addresses do. */
function translated(ex: Exchange, target: Target, means: Means, inlines: boolean, next: Next): Promise<Reply> {
  const input = accepted(ex, target)
  const plain = inlines || target.translator.inlineMedia ? means.images.inlined(ex, input) : input
  if (plain instanceof Promise) return inlinedFirst(plain, ex, target, means, inlines, next)
  ex.outbound.encode(new Encoding(ex, plain, target, means, inlines))
  return next()
}

async function inlinedFirst(
  inlined: Promise<Ops[Op]>,
  ex: Exchange,
  target: Target,
  means: Means,
  inlines: boolean,
  next: Next,
) {
  let input: Ops[Op]
  try {
    input = await inlined
  } catch (thrown) {
    throw forTarget(thrown, target)
  }
  await ex.step(() => ex.outbound.encode(new Encoding(ex, input, target, means, inlines)))
  return next()
}

/** Refuses a target that would drop a field of the client's wire; a target with that wire can carry it. */
function refuseForeign({ input: { native } }: Exchange, target: Target): void {
  const { translator, mapping, provider } = target
  if (native?.only === undefined || nativeFormOf(translator, native)) return
  const type = typeAt(native.only, native.body)
  const named = type === undefined ? `"${native.only}"` : `"${native.only}" is "${excerptOf(type)}", which`
  const only = `${named} can only be sent to providers that speak ${native.wire}`
  const chosen = `"${mapping.model.id}" at ${provider.id} uses ${translator.wire}`
  throw errors
    .unsupported(`${only}, and ${chosen}: leave it out, or choose another model.`, native.only)
    .with({ failover: true })
}

/** Returns the value in `body` at a path that ends in `type`; undefined for any other path. */
function typeAt(path: string, body: Readonly<Json>): string | undefined {
  if (!path.endsWith('.type')) return undefined
  let value: unknown = body
  for (const name of path.split(/[.[\]]+/)) {
    value = isObject(value) || Array.isArray(value) ? Reflect.get(value, name) : undefined
  }
  return textIn(value)
}

/** Films and sounds to go by are not fetched: a target that takes data alone gets none. */
function refuseReferences(request: Ops[Op], { provider }: Target): void {
  if (!provider.inlineMedia || !('reference_videos' in request)) return
  const { reference_videos: films, reference_audios: sounds } = request
  if (films.length + sounds.length === 0) return
  const param = films.length > 0 ? 'reference_videos' : 'reference_audios'
  throw errors
    .unsupported(
      `${param}: ${provider.id} takes no addresses. Send the images as data, or choose another model.`,
      param,
    )
    .with({ failover: true })
}

/**
 * One attempt's request, encoded again when a filter further in sets a lower output limit. A class because V8 kept the
 * closure that it replaces, and all that it reached, through several scavenges: 25 µs a request.
 */
class Encoding implements RequestEncoding {
  readonly #ex: Exchange
  readonly #input: Ops[Op]
  readonly #target: Target
  readonly #means: Means
  readonly #inlines: boolean
  /** The client's own body as this target gets it. */
  #body: NativeRequest['body'] | undefined

  /** `inlines`: the target gets data in place of every address. */
  constructor(ex: Exchange, input: Ops[Op], target: Target, means: Means, inlines: boolean) {
    this.#ex = ex
    this.#input = input
    this.#target = target
    this.#means = means
    this.#inlines = inlines
  }

  encode(): void {
    const ex = this.#ex
    const target = this.#target
    const { limit } = ex.outbound
    const input = limit ? ex.operation.bounded!(this.#input, limit.tokens) : this.#input
    const stream = ex.streaming && target.mapping.supports.has('streaming')
    try {
      const { fanOut, parts } = partsOf(ex, input, target)
      // Answers that are put together come whole.
      if (parts.length > 1) ex.outbound.sendParts(this.#parts(parts, fanOut!), fanOut!)
      else ex.outbound.send(this.#request(input, stream))
    } catch (thrown) {
      // Another wire may carry a request that this one cannot.
      throw thrown instanceof GatewayError && thrown.status === 400 ? thrown.with({ failover: true }) : thrown
    }
  }

  #parts(parts: readonly Ops[Op][], { repeats }: FanOut): RequestPart[] {
    const made: RequestPart[] = []
    let characters = 0
    for (const input of parts) {
      const request = this.#request(input, false)
      const own = weigh(request.body)
      made.push({ request, input, characters: own })
      characters += own
      // Where all are alike, the first says what they come to, and no other one is made.
      const all = repeats && made.length === 1 ? own * parts.length : characters
      if (all > MAX_REPEATED_CHARACTERS) throw tooLong(parts.length, repeats)
    }
    return made
  }

  #request(input: Ops[Op], stream: boolean): WireRequest {
    const ex = this.#ex
    const target = this.#target
    const { translator, provider, mapping } = target
    const { native: given } = ex.input
    const count =
      ex.endpoint.counts && (translator.count ?? none(`${provider.id}/${mapping.model.id} counts no tokens.`))
    const native = given && nativeFormOf(translator, given)
    const asking = native
      ? native.encode(this.#bodyIn(native, given!), input, target, stream, given!.headers)
      : translator.encode(this.#shown(input), target, stream)
    if (native)
      carryPreset(asking, ex.request!, input, native, one => translator.encode(this.#shown(one), target, stream))
    this.#means.identities.write(asking.body, ex, target)
    const request = count ? count.encode(asking, target) : asking
    applyQuirks(provider, request.body)
    return request
  }

  #shown(input: Ops[Op]): Ops[Op] {
    return this.#ex.answer.showsReasoning ? input : withoutReasoning(input)
  }

  /** A provider, or a wire, of data alone gets what was fetched for the canonical request, by address. */
  #bodyIn(form: NonNullable<Translator['native']>, { body }: NativeRequest): NativeRequest['body'] {
    const ex = this.#ex
    const { images, files } = this.#means
    const inlines = this.#inlines
    const [loadedFiles, loadedImages] = [files.loaded(ex), images.loaded(ex)]
    if (!inlines && (!this.#target.translator.inlineMedia || loadedFiles.size + loadedImages.size === 0)) return body
    this.#body ??= form.withMedia(body, new Map([...loadedFiles, ...loadedImages]), !inlines)
    return this.#body
  }
}

function tooLong(count: number, repeats: FanOut['repeats']): GatewayError {
  const [param, instead] = repeats
    ? ['n', 'ask for fewer images, or send smaller ones']
    : ['prompt', 'send fewer texts']
  const several = `${count} requests to this provider stand for it, which repeat what it holds`
  return errors.invalidField(
    param,
    `${several}, and may have ${MAX_REPEATED_CHARACTERS} characters in all; ${instead}.`,
  )
}

/** Throws the 400 of a wire that does not support the request. */
function none(message: string): never {
  throw errors.unsupported(message, 'model')
}

const ONE: readonly Ops[Op][] = []

/** Splits a request into several where the operation's rule, or else the wire's, says so. */
function partsOf(ex: Exchange, input: Ops[Op], target: Target) {
  for (const fanOut of [ex.operation.fanOut, target.translator.fanOut]) {
    const parts = fanOut?.split(input, target)
    if (parts && parts.length > 1) return { fanOut, parts }
  }
  return { fanOut: undefined, parts: ONE }
}

/** Removes the reasoning from a chat answer; other operations have none. */
const withoutReasoning = (input: Ops[Op]): Ops[Op] => ({ include_reasoning: false, ...(input as Ops['chat']) })

/** The request without what only tunes an answer and is not among the parameters that the mapping lists, if it does. */
function accepted(ex: Exchange, target: Target): Ops[Op] {
  const { mapping } = target
  const { parameters } = mapping
  const caches = mapping.autoCache || ex.caller.principal?.cachesPrompts === true
  const request = ex.operation.adapted?.(ex.request!, target, caches) ?? ex.request!
  ex.outbound.autoCached = 'auto_cached' in request
  if (!parameters) return request
  const { tuning }: { tuning: Readonly<Record<string, string>> } = ex.operation
  let rest = request
  for (const field in tuning) {
    if (Reflect.get(rest, field) == null || parameters.has(tuning[field]!)) continue
    if (rest === request) rest = { ...request }
    Reflect.deleteProperty(rest, field)
  }
  return rest
}

/**
 * Media at private hosts (`server.fetch_from`), which providers do not reach. Such requests are sent with data alone.
 * Each exchange is judged once, before anything is fetched for it.
 */
class PrivateHosts {
  readonly #judged = new WeakMap<Exchange, boolean>()

  /** Whether `target` gets data in the place of every address. */
  inlines(ex: Exchange, { provider }: Target): boolean {
    if (provider.inlineMedia) return true
    const judged = this.#judged.get(ex)
    if (judged !== undefined) return judged
    const images = addressesIn(ex.request!)
    const files = fileAddressesIn(ex.request!)
    if (images.size + files.size === 0) return false
    const isPrivate = ![...images.keys(), ...files.keys()].every(isPublicUrl)
    this.#judged.set(ex, isPrivate)
    return isPrivate
  }
}
