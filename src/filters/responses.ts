/** Stores responses for the requests that continue them, where the project says so (docs/responses.md#state). */
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import type { ResponseOwner, ResponseShare, Services } from '../core/ports.ts'
import { type Infer, s } from '../core/schema.ts'
import {
  type ResponseTexts,
  type StoredForm,
  type StoredResponses,
  type StoredTurn,
  turnText,
} from '../core/stored-responses.ts'
import { Count, MAX_VALUES, Shape } from '../json/shape.ts'
import { weigh } from '../json/size.ts'
import { structureOf } from '../json/structure.ts'
import { errors } from '../lib/error.ts'
import type { MemoryLease } from '../limits/memory.ts'
import { scheduler } from '../limits/scheduler.ts'
import { ownerOf } from '../policy/owner.ts'

/** Oldest responses of an organization, or of a session, that one new response may displace: some milliseconds. */
const MAX_DISPLACED = 200

const options = s.object({
  /** JSON of one response with what its own request added; larger ones are not stored. */
  max_response: s.default(s.size(), '4MiB'),
  /** Maximum size of one organization's responses; beyond it the oldest are removed. */
  organization: s.default(s.size(), '1GiB'),
  /** Maximum size of one end user's session, within the organization's; beyond it the session's oldest are removed. */
  session: s.default(s.size(), '64MiB'),
  /** Responses that one request may continue, or take items of. */
  max_chain: s.default(s.integer({ minimum: 1, maximum: 10_000, description: 'a count from 1 to 10000' }), 1000),
})

/** Sets `ExchangeInput.stored` where the project stores responses and its policy allows it. */
export const responses: FilterFactory<Infer<typeof options>> = {
  name: 'responses',
  options,
  needs: ['principal'],
  appliesTo: ({ codec }) => codec.stored !== undefined,
  create({ max_response: maxBytes, organization: bytes, session, max_chain: maxChain }, services) {
    const bounds: StoredBounds = { maxBytes, maxChain, share: { bytes, session, dropped: MAX_DISPLACED } }
    const opened = new WeakMap<Exchange, ExchangeResponses>()
    return {
      handle(ex, next) {
        const storeMs = ex.caller.policy?.keepsReplies === false ? undefined : ex.caller.principal?.responsesMs
        if (storeMs !== undefined) {
          const stored = new ExchangeResponses(ex, ex.endpoint.codec.stored!, storeMs, bounds, services)
          opened.set(ex, stored)
          ex.input.stored = stored
        }
        return next()
      },
      finish(ex) {
        opened.get(ex)?.release()
      },
    }
  },
}

/** Bounds of the filter `responses`; `maxBytes` and `share` are bytes of JSON, `maxChain` counts responses. */
interface StoredBounds {
  /** Maximum size of one response. */
  readonly maxBytes: number
  readonly share: ResponseShare
  readonly maxChain: number
}
type Needs = Pick<Services, 'responses' | 'memory' | 'log' | 'now'>

/** Copies of a text while it is in use: the text, and its parsed or sealed form. */
const COPIES = 2

interface TurnText {
  readonly values: number
  readonly input: readonly unknown[]
  readonly output: readonly unknown[]
}

/** The responses that a request continues, and its own. The filter releases their memory at the end of the exchange. */
class ExchangeResponses implements StoredResponses {
  previousId: string | null = null
  isStored = false
  readonly #ex: Exchange
  readonly #form: StoredForm
  readonly #storeMs: number
  readonly #options: StoredBounds
  readonly #services: Needs
  readonly #owner: ResponseOwner
  readonly #lease: MemoryLease
  #input: readonly unknown[] = []
  /** Characters of all turns read. */
  #read = 0
  #values = 0

  constructor(ex: Exchange, form: StoredForm, storeMs: number, options: StoredBounds, services: Needs) {
    const { orgId } = ex.caller.principal!
    this.#ex = ex
    this.#form = form
    this.#storeMs = storeMs
    this.#options = options
    this.#services = services
    this.#owner = ownerOf(ex.caller.principal!)
    this.#lease = services.memory.lease(orgId)
  }

  async read(body: unknown): Promise<unknown> {
    const { previous, others, store } = this.#form.references(body)
    const chain = previous === undefined ? [] : await this.#chain(previous)
    const isMissing = typeof chain === 'string'
    const found = {
      chain: isMissing ? [] : chain,
      missing: isMissing ? chain : undefined,
      others: await this.#others(others, isMissing ? [] : chain),
    }
    if (previous !== undefined) this.previousId = previous
    this.isStored = store
    this.#ex.input.values += this.#values
    const continued = this.#form.continued(body, found)
    this.#input = continued.input
    return continued.body
  }

  async store(id: string, { output, answer }: ResponseTexts): Promise<boolean> {
    this.isStored = await this.#stored(id, output, answer)
    this.#input = []
    return this.isStored
  }

  release(): void {
    this.#lease.release()
  }

  /** The responses that the one with this id continues, oldest first, and itself; or the first id that is missing. */
  async #chain(last: string): Promise<StoredTurn[] | string> {
    const chain: StoredTurn[] = []
    for (let id: string | null = last; id !== null; ) {
      if (chain.length === this.#options.maxChain) throw this.#tooLong(`more than ${this.#options.maxChain} responses`)
      const found: { turn: StoredTurn; previousId: string | null } | undefined = await this.#turn(id)
      if (!found) return id
      chain.push(found.turn)
      id = found.previousId
    }
    return chain.reverse()
  }

  async #others(ids: ReadonlySet<string>, chain: readonly StoredTurn[]): Promise<Map<string, StoredTurn>> {
    if (ids.size > this.#options.maxChain) throw this.#tooLong(`items of more than ${this.#options.maxChain} responses`)
    const others = new Map(chain.filter(({ id }) => ids.has(id)).map(turn => [turn.id, turn]))
    for (const id of ids) {
      const found = others.has(id) ? undefined : await this.#turn(id)
      if (found) others.set(id, found.turn)
    }
    return others
  }

  /** Leases memory for it, and counts it against the bounds of the body, which hold for the whole conversation. */
  async #turn(id: string): Promise<{ turn: StoredTurn; previousId: string | null } | undefined> {
    if (this.#ex.signal.reason) throw this.#ex.signal.reason
    const { responses, now } = this.#services
    const { orgId } = this.#owner
    const found = await scheduler.run(orgId, () => responses.findTurn(id, this.#owner, now() - this.#storeMs))
    if (!found) return undefined
    const { bodyLimit } = this.#ex.endpoint
    const { length } = found.turn
    this.#read += length
    if (this.#read > bodyLimit) throw this.#tooLong(`more than ${bodyLimit} characters`)
    if (!this.#lease.grow(length * COPIES)) throw errors.overloaded()
    const turn = await scheduler.run(orgId, () => JSON.parse(found.turn) as TurnText)
    const { values, input, output } = turn
    if (!this.#lease.grow(Math.max(0, structureOf(turn) - length))) throw errors.overloaded()
    this.#values += values
    if (this.#ex.input.values + this.#values > MAX_VALUES) throw this.#tooLong(`more than ${MAX_VALUES} JSON values`)
    return { turn: { id, input, output }, previousId: found.previousId }
  }

  /** Whether it is stored. */
  async #stored(id: string, output: string, answer: string): Promise<boolean> {
    const { responses, log, now } = this.#services
    const { maxBytes, share } = this.#options
    const least = weigh(this.#input, 1) + output.length + answer.length
    if (least > maxBytes || !this.#lease.grow(least * COPIES)) return false
    const input = JSON.stringify(this.#input)
    const length = input.length + output.length + answer.length
    if (length > maxBytes || !this.#lease.grow((length - least) * COPIES)) return false
    const count = new Count()
    const shape = new Shape({ values: MAX_VALUES }, count)
    for (const text of [input, output]) shape.add(text)
    if (shape.excess) return false
    const turn = turnText(count.values, { input, output })
    const record = { id, previousId: this.previousId, createdAt: now(), turn, answer }
    try {
      return await responses.add(record, this.#owner, share)
    } catch (err) {
      log.warn({ err, id }, 'response not stored')
      return false
    }
  }

  #tooLong(what: string) {
    return errors.invalidField(
      'previous_response_id',
      `the conversation has ${what}. Begin a new one, and send the needed items in input`,
    )
  }
}
