/** Events of an answer as the parts of a stream, in the order that the SDK checks. */
import type { Event, FinishReason, ReasoningEvent, SourceEvent, ToolEvent } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import { formatMoney } from '../../core/money.ts'
import { isObject, type Json } from '../../json/json.ts'
import { textKey } from '../../json/text-key.ts'
import { answererOf, answerIdOf, answerModelOf, replacedLimitOf, usageInfo } from '../accounting.ts'
import { carry } from '../carried-reasoning.ts'
import { callOf, type ProtocolCall } from './call.ts'
import { generationIdOf } from './error.ts'
import { OWN } from './options.ts'
import { type Found, searchInput, searchResult } from './search.ts'
import type { Reason } from './version.ts'

const REASONS: Readonly<Record<FinishReason, Reason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool-calls',
  content_filter: 'content-filter',
}
const MAX_NATIVE_CHARACTERS = 4 * 1024 * 1024
const DATA_URL = /^data:([^;,]+);base64,/i

interface Tool {
  id: string
  name: string
  args: string
  signature: string | undefined
  begun: boolean
}
interface Open {
  readonly type: 'text' | 'reasoning'
  readonly id: string
  readonly block?: number | undefined
  readonly format?: string | undefined
  signature?: string | undefined
}

/** Parts of one answer: `add` every event, then `end`, or `cut` after a failure; then read `finish`. */
export class PartWriter {
  readonly #ex: Exchange
  readonly #call: ProtocolCall
  #open: Open | undefined
  #blocks = 0
  readonly #tools = new Map<number, Tool>()
  readonly #ids = new Set<string>()
  readonly #found = new Map<string, Found>()
  #query: string | undefined
  /** Blocks that only their provider reads, until a part carries them. */
  #kept: Json[] = []
  #keptSize = 0
  #reason: FinishReason | undefined
  #raw: string | undefined

  constructor(ex: Exchange) {
    this.#ex = ex
    this.#call = callOf(ex)
  }

  /** Parts of one event, in order. This protocol has one choice. */
  *add(event: Event): Generator<Json> {
    if (!('choice' in event) || event.choice !== 0) return
    switch (event.type) {
      case 'text':
      case 'refusal':
        if (event.text === '') return
        if (this.#open?.type !== 'text') yield* this.#begin({ type: 'text', id: this.#nextId('text') })
        yield { type: 'text-delta', id: this.#open!.id, delta: event.text }
        return
      case 'reasoning':
        yield* this.#reasoning(event)
        return
      case 'tool':
        yield* this.#tool(event)
        return
      case 'image':
        yield* this.#close()
        yield this.#file(event.url)
        return
      case 'source':
        yield* this.#source(event)
        return
      case 'native':
        this.#native(event)
        return
      case 'finish':
        this.#reason ??= event.reason
        this.#raw ??= rawOf(event.ending?.fields)
    }
  }

  /** Writes the parts that are complete only after the last event. */
  *end(): Generator<Json> {
    yield* this.#close()
    for (const { id, name, args, signature, begun } of this.#tools.values()) {
      if (!begun) continue
      yield { type: 'tool-input-end', id }
      const call: Json = { type: 'tool-call', toolCallId: id, toolName: name, input: args === '' ? '{}' : args }
      if (signature !== undefined) call.providerMetadata = { [OWN]: { signature } }
      yield call
    }
    yield* this.#search()
  }

  /** A failed answer emits no incomplete call, because its input may be truncated. */
  *cut(): Generator<Json> {
    yield* this.#close()
  }

  /** The open block of text, which a piece of text goes on with. */
  get text(): string | undefined {
    return this.#open?.type === 'text' ? this.#open.id : undefined
  }

  get finish(): Json {
    const reason = this.#reason ?? 'stop'
    const { version } = this.#call
    return {
      finishReason: version.finish(REASONS[reason], this.#raw ?? reason),
      usage: version.usage(this.#ex),
      providerMetadata: { [OWN]: metadataOf(this.#ex) },
    }
  }

  #nextId(type: string): string {
    return `${type}-${this.#blocks++}`
  }

  *#begin(open: Open): Generator<Json> {
    yield* this.#close()
    this.#open = open
    yield { type: `${open.type}-start`, id: open.id }
  }

  *#close(): Generator<Json> {
    const open = this.#open
    if (!open) return
    this.#open = undefined
    const end: Json = { type: `${open.type}-end`, id: open.id }
    const { format, signature, block } = open
    const carried = open.type === 'text' && !this.#call.search ? this.#carried() : undefined
    if (format !== undefined || signature !== undefined) end.providerMetadata = { [OWN]: { format, signature, block } }
    else if (carried !== undefined) end.providerMetadata = { [OWN]: { carried } }
    yield end
  }

  *#reasoning({ text, format, block, signature, data }: ReasoningEvent): Generator<Json> {
    if (data !== undefined) {
      yield* this.#close()
      const id = this.#nextId('reasoning')
      const providerMetadata = { [OWN]: { format, data, block, signature } }
      yield { type: 'reasoning-start', id, providerMetadata }
      yield { type: 'reasoning-end', id, providerMetadata }
      return
    }
    if (text === '' && signature === undefined) return
    const open = this.#open
    const isOfOpen =
      open?.type === 'reasoning' && open.block === block && open.format === format && open.signature === undefined
    if (!isOfOpen) yield* this.#begin({ type: 'reasoning', id: this.#nextId('reasoning'), block, format })
    if (text !== '') yield { type: 'reasoning-delta', id: this.#open!.id, delta: text }
    if (signature !== undefined) this.#open!.signature = signature
  }

  *#tool({ index, id, name, args, signature }: ToolEvent): Generator<Json> {
    let tool = this.#tools.get(index)
    if (!tool) {
      tool = { id: '', name: '', args: '', signature: undefined, begun: false }
      this.#tools.set(index, tool)
    }
    if (!tool.begun && id) tool.id = id
    if (!tool.begun && name) tool.name = name
    tool.signature ??= signature
    if (args) tool.args += args
    let delta = args
    if (!tool.begun) {
      if (tool.name === '') return
      yield* this.#close()
      tool.begun = true
      // Two calls with one id would have one input and one result.
      if (tool.id === '' || this.#ids.has(textKey(tool.id))) tool.id = `call_${answerIdOf(this.#ex)}_${index}`
      this.#ids.add(textKey(tool.id))
      yield { type: 'tool-input-start', id: tool.id, toolName: tool.name }
      delta = tool.args
    }
    if (delta) yield { type: 'tool-input-delta', id: tool.id, delta }
  }

  #file(url: string): Json {
    const [head, mediaType] = DATA_URL.exec(url.slice(0, 200)) ?? []
    const { version } = this.#call
    if (head !== undefined) return { type: 'file', mediaType, data: version.fileData(url.slice(head.length)) }
    if (version.number === 4) return { type: 'file', mediaType: 'image/png', data: { type: 'url', url } }
    // Files of these versions are bytes.
    return { type: 'source', sourceType: 'url', id: this.#nextId('src'), url }
  }

  *#source({ url, title = '' }: SourceEvent): Generator<Json> {
    if (this.#call.hidesSearch || this.#found.has(url)) return
    const id = `src_${this.#found.size}`
    this.#found.set(url, { url, title })
    yield { type: 'source', sourceType: 'url', id, url, title: title === '' ? undefined : title }
  }

  /** Some providers report their query. */
  #native({ provider, block }: Extract<Event, { type: 'native' }>): void {
    const { type, input } = block
    if (type === 'server_tool_use' && isObject(input) && typeof input.query === 'string') this.#query ??= input.query
    const kept = Object.assign({}, block, { provider })
    this.#keptSize += JSON.stringify(kept).length
    if (this.#keptSize <= MAX_NATIVE_CHARACTERS) this.#kept.push(kept)
  }

  /** The native blocks so far, for the next request to return. */
  #carried(): string | undefined {
    if (this.#kept.length === 0) return undefined
    const native = this.#kept
    this.#kept = []
    return carry({ native })
  }

  /** One search of the provider, which found all that is cited. */
  *#search(): Generator<Json> {
    const { search, version, mustSearch } = this.#call
    const hasSearched = this.#found.size > 0 || this.#query !== undefined || (this.#ex.usage.web_search ?? 0) > 0
    if (!search || !(hasSearched || mustSearch)) return
    const id = `srvtoolu_${answerIdOf(this.#ex)}`
    const query = this.#query ?? search.query
    const input = searchInput(search, query)
    const { name: toolName } = search
    yield { type: 'tool-input-start', id, toolName, providerExecuted: true }
    yield { type: 'tool-input-delta', id, delta: input }
    yield { type: 'tool-input-end', id }
    const call: Json = { type: 'tool-call', toolCallId: id, toolName, input, providerExecuted: true }
    const carried = this.#carried()
    if (carried !== undefined) call.providerMetadata = { [OWN]: { carried } }
    yield call
    const result = searchResult(search, query, [...this.#found.values()])
    yield { type: 'tool-result', toolCallId: id, toolName, result, ...version.ranByProvider }
  }
}

/** The provider's own stop reason, where its wire has one. */
function rawOf(fields: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const raw = fields?.stop_reason ?? fields?.finishReason
  return typeof raw === 'string' ? raw : undefined
}

/** Undefined members are left out of the JSON; `cost` is USD as a decimal string. */
function metadataOf(ex: Exchange): Json {
  const finalProvider = answererOf(ex)
  return {
    cost: ex.meter.cost ? formatMoney(ex.meter.cost.total) : undefined,
    generationId: generationIdOf(answerIdOf(ex)),
    usedModel: answerModelOf(ex),
    usedProvider: finalProvider,
    requestId: ex.id,
    cached: ex.answer.cached ? true : undefined,
    stoppedBy: ex.answer.stoppedBy,
    maxTokens: replacedLimitOf(ex),
    usageInfo: usageInfo(ex),
    routing: {
      originalModelId: ex.requested.model,
      resolvedProvider: finalProvider,
      canonicalSlug: answerModelOf(ex),
      finalProvider,
      totalProviderAttemptCount: ex.attempts.length,
    },
  }
}
