/** Opens a session: its place, its provider, and only then its client's WebSocket. */
import type { Cancellation } from '../core/cancel.ts'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Message, MessageListener } from '../core/message-socket.ts'
import { isFor, isOver } from '../core/offer.ts'
import { catalogOf } from '../core/policy.ts'
import type { ProviderSocket, Services } from '../core/ports.ts'
import type { Reply } from '../core/reply.ts'
import type { Mapping } from '../core/translator.ts'
import { isObject, type Json } from '../json/json.ts'
import { errors, GatewayError } from '../lib/error.ts'
import type { RealtimeRequest } from '../operations/realtime/request.ts'
import { accessError } from '../policy/access-check.ts'
import { readProviderError, upstreamError } from '../wire/upstream-error.ts'
import { enterReadRates } from './channel.ts'
import { EventError, type ReadEvent, readEvent } from './events.ts'
import { Session } from './session.ts'
import { firstUpdate, type SettingsContext } from './settings.ts'

/** Subprotocol that a client may offer besides its credential. */
const PROTOCOL = 'realtime'
/** For the provider's first event. */
const FIRST_EVENT_MS = 15_000
/** Bytes of that event, which no memory is counted for; real ones have a few thousand. */
const MAX_FIRST_EVENT_BYTES = 256 * 1024
const NO_EVENT = `its first message is not an event of ${MAX_FIRST_EVENT_BYTES} bytes at most`
/** Providers' own errors have no status: what they say after they have opened a connection is theirs to answer for. */
const FAULT_STATUS = 502

/** Names of the models that a name stands for. Throws a GatewayError for one that rules deny. */
type Meant = (name: string) => readonly string[]

/** Answers the upgrade of a request; rejects with a GatewayError before the WebSocket is open. */
export async function openSession(ex: Exchange, services: Services, meant: Meant): Promise<Reply> {
  const leave = await openSessions.enter(ex, services)
  try {
    if (ex.signal.reason) throw ex.signal.reason
    const session = await begin(ex, services, meant)
    openSessions.add(session)
    ex.signal.listen(() => session.shutDown())
    void session.ended.then(leave)
    return { status: 101, headers: [], events: until(session, ex) }
  } catch (thrown) {
    leave()
    throw thrown
  }
}

async function begin(ex: Exchange, services: Services, meant: Meant): Promise<Session> {
  const { realtime: limits } = ex.snapshot
  const target = ex.target!
  ex.timings.sent = performance.now()
  const provider = await services.providerSockets.open({
    ...{ id: ex.id, tenant: ex.caller.tenant, target, request: ex.outbound.request!, signal: ex.signal },
    trace: ex.outbound.trace,
    maxMessageBytes: limits.message,
  })
  try {
    const earlier: Message[] = []
    const created = await firstEvent(provider, ex, earlier)
    ex.timings.answered = performance.now()
    ex.committed()
    const { session, transcribes, model } = ex.request as RealtimeRequest
    const context: SettingsContext = {
      ...{ target, transcribes, catalog: catalogOf(ex), form: target.translator.realtime! },
      requested: model,
      meant: name => namesOf(name, meant),
      isAllowed: mapping => isAllowed(mapping, ex, services.now()),
      hasInstructions: session?.type === 'realtime' && session.instructions !== undefined,
    }
    const fixed = session ?? (transcribes ? { audio: { input: { transcription: { model } } } } : undefined)
    const first = firstUpdate(created.event.session as Json, fixed, context)
    // From here on nothing is refused.
    const client = ex.http.upgrade!({ limit: limits.message, protocol: PROTOCOL })
    const readRates = enterReadRates(ex.caller.tenant, limits.rate)
    const running = new Session({
      ...{ client, provider, created, earlier, context, first, limits, charges: ex.charges! },
      tenant: ex.caller.tenant,
      readRates,
      lease: services.memory.lease(ex.caller.tenant),
      now: services.now,
      denied: () => accessError(ex, services.policies),
      log: services.log,
    })
    void running.ended.then(readRates.leave)
    return running
  } catch (thrown) {
    provider.socket.destroy()
    if (!(thrown instanceof EventError)) throw thrown
    throw errors.unsupported(thrown.message, thrown.param ?? 'session', thrown.code)
  }
}

function namesOf(name: string, meant: Meant): readonly string[] {
  try {
    return meant(name)
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    throw new EventError(
      thrown.code ?? 'transcription_model_not_allowed',
      thrown.message,
      'session.audio.input.transcription.model',
    )
  }
}

const isAllowed = (mapping: Mapping, { caller: { access }, target }: Exchange, now: number): boolean =>
  !isOver(mapping, new Date(now).toISOString().slice(0, 10)) &&
  isFor(mapping, target!.credential) &&
  access?.issue(mapping) === undefined

/** The provider's `session.created`; what has come behind it is added to `later`. Rejects with what comes in its place. */
async function firstEvent(provider: ProviderSocket, ex: Exchange, later: Message[]): Promise<ReadEvent> {
  const message = await firstMessage(provider, ex.signal, later)
  const reading = message === undefined ? undefined : readEvent(message, ex.caller.tenant, provider.mask)
  const read = reading instanceof Promise ? await reading : reading
  if (!read) throw errors.invalidAnswer(NO_EVENT)
  if (read.event.type === 'session.created' && isObject(read.event.session)) return read
  throw errorOf(read.event, ex)
}

function firstMessage({ socket }: ProviderSocket, signal: Cancellation, later: Message[]): Promise<Message> {
  return new Promise((resolve, reject) => {
    let isFirst = true
    const end = () => {
      isFirst = false
      clearTimeout(timer)
      signal.ignore(left)
      socket.pause()
    }
    const fail = (error: GatewayError) => {
      end()
      reject(error)
    }
    const timer = setTimeout(() => fail(errors.upstreamTimeout('no session was opened in time')), FIRST_EVENT_MS)
    const left = () => fail(signal.reason ?? errors.aborted())
    signal.listen(left)
    let came = 0
    socket.open(
      listening({
        message(message) {
          if (!isFirst) {
            later.push(message)
            return
          }
          end()
          resolve(message)
        },
        read(bytes) {
          came += bytes
          if (isFirst && came > MAX_FIRST_EVENT_BYTES) fail(errors.invalidAnswer(NO_EVENT))
        },
        closed(code) {
          if (isFirst) fail(errors.invalidAnswer(`it closed the session at once (${code})`))
        },
      }),
    )
  })
}

const listening = (some: Pick<MessageListener, 'message' | 'read' | 'closed'>): MessageListener => ({
  ...some,
  pinged: () => undefined,
  pong: () => undefined,
  drained: () => undefined,
})

function errorOf(event: Readonly<Json>, ex: Exchange): GatewayError {
  const fault = event.type === 'error' ? readProviderError(event) : undefined
  if (!fault) return errors.invalidAnswer('its first event opens no session')
  return upstreamError(FAULT_STATUS, fault, ex.target)
}

/** Comes to its end with the session. */
async function* until(session: Session, ex: Exchange): AsyncGenerator<readonly Event[]> {
  await session.ended
  ex.answer.failure ??= session.failure
  yield []
}

const TICK_MS = 1000

/** Counts sessions for the process, the organization and the key, and ticks those that are open. */
class OpenSessions {
  readonly #sessions = new Set<Session>()
  #places = 0
  #timer: NodeJS.Timeout | undefined

  /** Takes a place; resolves with what gives it back. Rejects with 429 or 529. */
  async enter(
    { caller: { principal }, snapshot: { realtime } }: Exchange,
    { counters }: Services,
  ): Promise<() => void> {
    const { orgId, keyId } = principal!
    if (this.#places >= realtime.perProcess) throw errors.overloaded()
    this.#places++
    const taken: string[] = []
    const leave = () => {
      this.#places--
      for (const place of taken) void counters.leave(place)
    }
    try {
      for (const [place, most, who] of [
        [`${orgId} realtime`, realtime.perOrganization, 'organization'],
        [`${keyId} realtime`, realtime.perKey, 'key'],
      ] as const) {
        if (!(await counters.enter(place, most))) throw tooMany(who, most)
        taken.push(place)
      }
    } catch (thrown) {
      leave()
      throw thrown
    }
    return leave
  }

  add(session: Session): void {
    this.#sessions.add(session)
    this.#timer ??= setInterval(() => {
      const now = performance.now()
      for (const open of this.#sessions) open.tick(now)
    }, TICK_MS).unref()
    void session.ended.then(() => {
      this.#sessions.delete(session)
      if (this.#sessions.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    })
  }
}

const openSessions = new OpenSessions()

const tooMany = (who: string, most: number) =>
  new GatewayError({
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message: `Too many realtime sessions are open: this ${who} may have ${most}. Close one first.`,
    headers: { 'retry-after': '1' },
  })
