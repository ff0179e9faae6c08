/** Repairs malformed JSON answers on request (`plugins: [{ id: 'response-healing' }]`). */

import type { Event, SourceEvent } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import type { HealingSkipped, Log, Metrics } from '../../core/ports.ts'
import type { Reply } from '../../core/reply.ts'
import { type Schema, s } from '../../core/schema.ts'
import { CALL_BOUNDS, Count, Shape } from '../../json/shape.ts'
import type { MemoryBudget, MemoryLease } from '../../limits/memory.ts'
import { heal, isJson, soundJson } from './heal.ts'
import { type HealLimits, HealThreads } from './heal-threads.ts'

/** Characters of one answer, all choices together, that are looked through for JSON on the event loop. */
const INLINE_CHARACTERS = 4 * 1024
/** Characters that are held of one answer; what is beyond them is passed on as it came. */
const MAX_HELD_CHARACTERS = 1024 * 1024
/** Memory is taken in such steps, and none for the first of them. */
const MEMORY_STEP_CHARACTERS = 64 * 1024
/** Bytes that a character may take. */
const BYTES_PER_CHARACTER = 2

/** Threads of the process, shared by all filters. */
const threads = new HealThreads()

const options: Schema<HealLimits> = s.object({
  threads: s.default(s.integer({ minimum: 1, maximum: 64 }), 2),
  queue: s.default(s.integer({ minimum: 0, maximum: 100_000 }), 64),
  wait: s.default(s.duration(), '5s'),
  work: s.default(s.duration(), '2s'),
})

/** Replaces the text of answers that `isHealed` is true for. */
export const healing: FilterFactory<HealLimits> = {
  name: 'healing',
  options,
  create(limits, services) {
    return {
      handle(ex, next) {
        return next().then(reply => {
          if (isHealed(ex)) reply.events = healed(ex, reply.events, services, limits)
          return reply
        })
      },
    }
  },
}

/**
 * For requests that have been read: whether `response_format` asks for JSON and the answer can be read whole
 * (docs/contract.md#healing).
 */
export function isHealed({ endpoint, request, chat }: Exchange): boolean {
  if (endpoint.operation?.name !== 'chat' || !request || !chat.plugins?.some(({ id }) => id === 'response-healing'))
    return false
  const format = chat.response_format?.type
  return (format === 'json_object' || format === 'json_schema') && !(chat.stream && (chat.n ?? 1) > 1)
}

/** Services that `healed` uses. */
export interface HealingServices {
  readonly memory: MemoryBudget
  readonly metrics: Pick<Metrics, 'unhealed'>
  readonly log: Pick<Log, 'warn'>
}

/** The events of an answer, healed. The exchange, the log and a metric say what could not be. */
export async function* healed(
  ex: Exchange,
  events: Reply['events'],
  { memory, metrics, log }: HealingServices,
  limits: HealLimits,
  aside: HealThreads = threads,
): AsyncGenerator<readonly Event[]> {
  const { tenant } = ex.caller
  const lease = memory.lease(tenant)
  const answer = new HealingBuffer(tenant, lease, aside, limits)
  try {
    for await (const batch of events) {
      const out = await answer.pass(batch)
      if (out.length > 0) yield out
    }
    const rest = await answer.end()
    if (rest.length > 0) yield rest
  } finally {
    lease.release()
    if (answer.skipped) {
      ex.answer.healingSkipped = answer.skipped
      metrics.unhealed(answer.skipped)
      log.warn({ request_id: ex.id, organization: tenant, reason: answer.skipped }, 'answer not healed')
    }
  }
}

/** The text of a choice, and the citations to emit after it. */
class HeldText {
  readonly choice: number
  readonly text: string
  readonly sources: readonly SourceEvent[]

  constructor(choice: number, text: string, sources: readonly SourceEvent[]) {
    this.choice = choice
    this.text = text
    this.sources = sources
  }

  /** Sources keep their places in the text only where it is as it came. */
  events(text: string): Event[] {
    const sources = text === this.text ? this.sources : this.sources.map(withoutPlace)
    return [{ type: 'text', choice: this.choice, text }, ...sources]
  }
}

/**
 * Holds each choice's text until the choice ends and emits it in one piece, unless the texts are too long to heal.
 * Citations follow the text.
 */
class HealingBuffer {
  /** Why a text was passed on that is malformed, or was not parsed. */
  skipped: HealingSkipped | undefined = undefined
  readonly #tenant: string
  readonly #lease: MemoryLease
  readonly #aside: HealThreads
  readonly #limits: HealLimits
  readonly #texts = new Map<number, string>()
  readonly #cited = new Map<number, SourceEvent[]>()
  /** Choices that are no longer held. */
  readonly #passed = new Set<number>()
  /** Counts the JSON values of all texts. */
  readonly #count = new Count()
  #held = 0
  #leased = MEMORY_STEP_CHARACTERS
  #small = INLINE_CHARACTERS

  constructor(tenant: string, lease: MemoryLease, aside: HealThreads, limits: HealLimits) {
    this.#tenant = tenant
    this.#lease = lease
    this.#aside = aside
    this.#limits = limits
  }

  /** The events that can be emitted after a batch. */
  pass(batch: readonly Event[]): Promise<Event[]> | Event[] {
    const out: (Event | HeldText)[] = []
    for (const event of batch) {
      if (event.type === 'text' && !this.#passed.has(event.choice)) {
        const text = (this.#texts.get(event.choice) ?? '') + event.text
        this.#texts.set(event.choice, text)
        const skipped = this.#grow(event.text.length)
        if (!skipped) continue
        this.skipped ??= skipped
        this.#passed.add(event.choice)
        out.push(...this.#original(event.choice))
      } else if (event.type === 'finish') {
        // Text beside calls is not the answer yet, and need not be JSON.
        out.push(...(event.reason === 'tool_calls' ? this.#original(event.choice) : this.#taken(event.choice)), event)
      } else if (event.type === 'error') {
        // A broken answer is emitted unrepaired.
        for (const held of [...this.#texts.keys()].flatMap(choice => this.#taken(choice))) {
          out.push(...held.events(held.text))
        }
        out.push(event)
      } else if (event.type === 'source' && this.#texts.has(event.choice)) {
        const sources = this.#cited.get(event.choice) ?? []
        sources.push(event)
        this.#cited.set(event.choice, sources)
      } else if (event.type === 'tool' || event.type === 'phase') {
        // Earlier text is not the answer either, and stays before the calls.
        out.push(...this.#original(event.choice), event)
      } else out.push(event)
    }
    return this.#settled(out)
  }

  end(): Promise<Event[]> | Event[] {
    return this.#settled([...this.#texts.keys()].flatMap(choice => this.#taken(choice)))
  }

  /** Why so many characters more cannot be held. */
  #grow(length: number): HealingSkipped | undefined {
    this.#held += length
    if (this.#held > MAX_HELD_CHARACTERS) return 'too_long'
    const wanted = Math.ceil((this.#held - this.#leased) / MEMORY_STEP_CHARACTERS) * MEMORY_STEP_CHARACTERS
    if (wanted <= 0) return undefined
    if (!this.#lease.grow(wanted * BYTES_PER_CHARACTER)) return 'busy'
    this.#leased += wanted
    return undefined
  }

  #original(choice: number): Event[] {
    return this.#taken(choice).flatMap(held => held.events(held.text))
  }

  /** Removes and returns the held end of a choice; none or one. */
  #taken(choice: number): HeldText[] {
    const text = this.#texts.get(choice)
    if (text === undefined) return []
    const held = new HeldText(choice, text, this.#cited.get(choice) ?? [])
    this.#texts.delete(choice)
    this.#cited.delete(choice)
    this.#held -= text.length
    return [held]
  }

  /** A text that would cost too much to parse is not, and is passed on as it came. */
  #isBroken(text: string): boolean {
    const shape = new Shape(CALL_BOUNDS, this.#count)
    shape.add(text)
    if (shape.excess === undefined) return !isJson(text)
    this.skipped ??= 'too_long'
    return false
  }

  /** Undefined where they are long, or one of them needs a repair: that is never made here, however short it is. */
  #sound(texts: readonly string[]): string[] | undefined {
    const length = texts.reduce((sum, text) => sum + text.length, 0)
    if (length > this.#small) return undefined
    this.#small -= length
    const sound = texts.map(soundJson)
    return sound.every(text => text !== undefined) ? sound : undefined
  }

  /** The texts in `out` are healed together. */
  #settled(out: readonly (Event | HeldText)[]): Promise<Event[]> | Event[] {
    const broken = out.filter(one => one instanceof HeldText && this.#isBroken(one.text)) as HeldText[]
    const emit = (healed: readonly string[] = []) =>
      out.flatMap(one => (one instanceof HeldText ? one.events(healed[broken.indexOf(one)] ?? one.text) : one))
    if (broken.length === 0) return emit()
    const texts = broken.map(({ text }) => text)
    const sound = this.#sound(texts)
    if (sound) return emit(sound)
    if (!this.#aside.available) return emit(texts.map(heal))
    return this.#aside.heal(this.#tenant, texts, this.#limits).then(healed => {
      if (typeof healed !== 'string') return emit(healed)
      this.skipped ??= healed
      return emit()
    })
  }
}

const withoutPlace = ({ start: _, end: _e, ...source }: SourceEvent): SourceEvent => source
