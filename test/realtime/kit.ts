/** A session between two ends that tests drive, whose parts are paid for from a balance that tests read. */
import { setImmediate } from 'node:timers/promises'
import { realtime } from '../../plugins/openai/realtime.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import type { MessageListener, MessageSocket } from '../../src/core/message-socket.ts'
import type { PartHold, SessionCharges, SessionPart } from '../../src/core/realtime.ts'
import type { Mapping } from '../../src/core/translator.ts'
import type { Usage } from '../../src/core/usage.ts'
import { errors, type GatewayError } from '../../src/lib/error.ts'
import { TokenBucket } from '../../src/limits/rate.ts'
import { scheduler } from '../../src/limits/scheduler.ts'
import type { RealtimeEvent } from '../../src/realtime/events.ts'
import { Session } from '../../src/realtime/session.ts'
import { firstUpdate, type SettingsContext } from '../../src/realtime/settings.ts'
import { Mask } from '../../src/secrets/mask.ts'
import { target } from '../plugins/wire-kit.ts'

const TENANT = 'org-1'

/** Lets everything of the tenant run that needs no network. */
export async function settle(): Promise<void> {
  for (let steps = 0; steps < 200; steps++) {
    await scheduler.run(TENANT, () => undefined)
    await setImmediate()
  }
}

/** One end of a WebSocket: keeps what is sent to it, and closes at once. */
export class End implements MessageSocket {
  readonly sent: RealtimeEvent[] = []
  readonly closes: number[] = []
  pings = 0
  paused = false
  waiting = 0
  received = 0
  #listener: MessageListener | undefined

  open(listener: MessageListener): void {
    this.#listener = listener
  }
  send(text: string): void {
    if (this.closes.length > 0) throw new Error(`sent after the close: ${text}`)
    this.sent.push(JSON.parse(text) as RealtimeEvent)
  }
  ping(): void {
    this.pings++
  }
  pause(): void {
    this.paused = true
  }
  resume(): void {
    this.paused = false
  }
  close(code: number): void {
    this.closes.push(code)
    process.nextTick(() => this.#listener?.closed(code))
  }
  destroy(): void {
    this.close(1006)
  }

  /** What the end on the other side sends. */
  message(event: object | string): void {
    const text = typeof event === 'string' ? event : JSON.stringify(event)
    const bytes = Buffer.byteLength(text)
    this.received += bytes
    this.#listener?.message(text, bytes)
  }
  /** Bytes of a message that is not whole yet. */
  come(bytes: number): void {
    this.#listener?.read(bytes)
  }
  pinged(): void {
    this.#listener?.pinged()
  }
  pong(): void {
    this.#listener?.pong()
  }
  drained(): void {
    this.waiting = 0
    this.#listener?.drained()
  }
  /** The other side closes. */
  left(code = 1000): void {
    this.closes.push(code)
    this.#listener?.closed(code)
  }
  types(): string[] {
    return this.sent.map(({ type, error }) => (type === 'error' ? `error ${(error as { code?: string }).code}` : type))
  }
  last(): RealtimeEvent | undefined {
    return this.sent.at(-1)
  }
}

/** A token costs 1, whatever its kind, and a second of a transcript 1,000. */
const costOf = ({ prompt = 0, completion = 0, input_audio_hour: hours = 0 }: Usage): number =>
  prompt + completion + Math.round(hours * 3600 * 1000)

const LEAST_OUTPUT = 256

export interface Settled extends SessionPart {
  readonly model: string
  readonly cost: number
}

/** A balance that parts are held and charged against. */
export class Balance implements SessionCharges {
  readonly settled: Settled[] = []
  /** What was last held for, or wanted beyond that. */
  expected: Usage = {}
  held = 0
  /** Called when something is held for. */
  onHeld: () => void = () => undefined
  left: number
  readonly #own: Mapping

  constructor(left: number, own: Mapping) {
    this.left = left
    this.#own = own
  }

  hold(expected: Usage, mapping = this.#own): Promise<PartHold> {
    return this.#hold(expected, mapping, costOf(expected))
  }

  holdResponse(expected: Usage): Promise<PartHold> {
    const { completion = 0 } = expected
    return this.#hold(expected, this.#own, costOf(expected) - completion + Math.min(completion, LEAST_OUTPUT))
  }

  async #hold(expected: Usage, mapping: Mapping, least: number): Promise<PartHold> {
    await setImmediate()
    this.expected = expected
    const all = costOf(expected)
    let amount = this.left < all && this.left >= least ? this.left : all
    if (!this.#take(amount)) throw errors.insufficientCredits().with({ code: 'insufficient_credits' })
    const output = (expected.completion ?? 0) - (all - amount)
    const release = () => {
      this.held -= amount
      this.left += amount
      amount = 0
    }
    return {
      output,
      extend: async usage => {
        this.expected = usage
        const missing = costOf(usage) - amount
        if (missing > 0 && !this.#take(missing)) return false
        amount += Math.max(0, missing)
        return true
      },
      note: () => undefined,
      settle: async part => {
        await setImmediate()
        const cost = part.estimated ? Math.min(amount, costOf(part.usage)) : costOf(part.usage)
        release()
        this.left -= cost
        this.settled.push({ ...part, model: mapping.model.id, cost })
        return BigInt(cost)
      },
      release,
    }
  }

  #take(amount: number): boolean {
    if (amount > this.left) return false
    this.left -= amount
    this.held += amount
    this.onHeld()
    return true
  }

  get charged(): number {
    return this.settled.reduce((sum, { cost }) => sum + cost, 0)
  }
}

export interface Opening {
  readonly balance?: number
  readonly transcribes?: boolean
  readonly byok?: boolean
  readonly mapping?: Partial<Mapping>
  /** A credential that its provider may send back. */
  readonly secret?: string
  /** More of the settings that its provider opens it with. */
  readonly settings?: object
  /** What its provider has sent behind them. */
  readonly earlier?: readonly string[]
  /** Why its caller may not go on. */
  readonly denied?: () => GatewayError | undefined
}

const MINUTE = 60_000
export const limits = {
  ...{ enabled: true, session: 60 * MINUTE, idle: 5 * MINUTE, spend: 10n ** 12n },
  ...{ perOrganization: 20, perKey: 10, perProcess: 2000, message: 1024 * 1024, rate: 1e9 },
}

/** An open session whose own first update its provider has accepted. */
export async function opened(opening: Opening = {}) {
  const {
    balance = 1_000_000,
    transcribes = false,
    byok = false,
    mapping = {},
    secret,
    settings,
    earlier = [],
    denied,
  } = opening
  const to = target({ translator: realtime, mapping, ...(byok && { secret: 'sk-own' }) })
  const credential = byok ? ({ source: 'byok' } as const) : undefined
  const transcriber = (id: string) => {
    const offer = target({ provider: to.provider, model: { id }, mapping: { externalId: `${id}-1` } }).mapping
    const mapping: Mapping = { ...offer, provider: to.provider, wires: new Map([['realtime', realtime]]) }
    return [id, { ...offer.model, mappings: [mapping] }] as const
  }
  const models = new Map(['scribe', 'other', 'denied'].map(transcriber))
  const catalog: Partial<Catalog> = { models, aliases: new Map() }
  const context: SettingsContext = {
    target: { ...to, ...(credential && { credential: { ...to.credential!, ...credential } }) },
    catalog: catalog as Catalog,
    requested: to.mapping.model.id,
    meant: name => [name],
    form: realtime.realtime!,
    transcribes,
    hasInstructions: false,
    isAllowed: ({ model }) => model.id !== 'denied',
  }
  const created = {
    type: 'session.created',
    session: {
      type: 'realtime',
      audio: { input: { turn_detection: { type: 'server_vad', create_response: true } } },
      ...settings,
    },
  }
  const transcription = { audio: { input: { transcription: { model: 'scribe' } } } }
  const client = new End()
  const provider = new End()
  const charges = new Balance(balance, to.mapping)
  const session = new Session({
    client,
    provider: { socket: provider, mask: secret === undefined ? undefined : new Mask(secret) },
    ...{ created: { event: created, text: JSON.stringify(created) }, earlier, context, charges, limits, now: () => 0 },
    first: firstUpdate(created.session, transcribes ? transcription : undefined, context),
    denied: async () => denied?.(),
    tenant: TENANT,
    readRates: { client: new TokenBucket(1e9, 1e9), provider: new TokenBucket(1e9, 1e9) },
    lease: { held: 0, grow: () => true, keep: () => undefined, release: () => undefined },
    log: { warn: (fields, message) => console.error(message, fields) },
  })
  provider.message({ type: 'session.updated', session: {} })
  await settle()
  return {
    session,
    client,
    provider,
    charges,
    lastUpdate: () => provider.sent.findLast(({ type }) => type === 'session.update'),
  }
}

/** A response as a provider ends it. */
export const done = (id: string, input: number, output: number, status = 'completed') => ({
  type: 'response.done',
  response: { id, status, output: [{}], usage: { input_tokens: input, output_tokens: output } },
})
