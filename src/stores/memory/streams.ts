/** Message streams to clients, within this process. */
import { randomBytes } from 'node:crypto'
import type { StreamLimits } from '../../core/mcp.ts'
import type { MessageStream, MessageStreams, StreamOwner } from '../../core/ports.ts'
import { errors, GatewayError } from '../../lib/error.ts'
import type { MemoryBudget, MemoryLease } from '../../limits/memory.ts'

const LIFE_MS = 3_600_000
const SILENCE_MS = 15_000
const ID_BYTES = 24
/** Memory of one character. */
const CHARACTER_BYTES = 2

/** Open streams by a random id. `open` throws a 429 beyond the limits of tenant and key, a 529 beyond all. */
export class MemoryStreams implements MessageStreams {
  readonly #open = new Map<string, OpenStream>()
  readonly #memory: MemoryBudget

  constructor(memory: MemoryBudget) {
    this.#memory = memory
  }

  open(owner: StreamOwner, limits: StreamLimits): MessageStream {
    const ofTenant = [...this.#open.values()].filter(stream => stream.owner.tenant === owner.tenant)
    const ofKey = ofTenant.filter(stream => stream.owner.key === owner.key)
    if (ofKey.length >= limits.perKey || ofTenant.length >= limits.perOrganization) throw tooMany(limits)
    if (this.#open.size >= limits.perProcess) throw errors.overloaded()
    const stream = new OpenStream(owner, this.#memory.lease(owner.tenant), () => this.#open.delete(stream.id))
    this.#open.set(stream.id, stream)
    return stream
  }

  find(id: string): MessageStream | undefined {
    return this.#open.get(id)
  }
}

const tooMany = ({ perKey, perOrganization }: StreamLimits) =>
  new GatewayError({
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message: `Too many streams are open: a key may have ${perKey}, an organization ${perOrganization}. Close one first.`,
    headers: { 'retry-after': '1' },
  })

class OpenStream implements MessageStream {
  readonly id = randomBytes(ID_BYTES).toString('base64url')
  readonly owner: StreamOwner
  readonly #lease: MemoryLease
  readonly #closed: () => void
  readonly #endsAt = performance.now() + LIFE_MS
  #waiting: string[] = []
  #bytes = 0
  #ended = false
  #wake: (() => void) | undefined

  constructor(owner: StreamOwner, lease: MemoryLease, closed: () => void) {
    this.owner = owner
    this.#lease = lease
    this.#closed = closed
  }

  send(message: string): boolean {
    const bytes = message.length * CHARACTER_BYTES
    if (!this.#ended && !this.#lease.grow(bytes)) this.end()
    if (this.#ended) return false
    this.#bytes += bytes
    this.#waiting.push(message)
    this.#wake?.()
    return true
  }

  async next(): Promise<readonly string[] | undefined> {
    // The previous message has been written.
    this.#lease.release()
    if (this.#bytes > 0 && !this.#lease.grow(this.#bytes)) this.end()
    if (this.#waiting.length === 0 && !this.#ended) await this.#silence()
    if (performance.now() >= this.#endsAt) this.end()
    const taken = this.#waiting
    this.#waiting = []
    this.#bytes = 0
    if (taken.length > 0 || !this.#ended) return taken
    this.#lease.release()
    return undefined
  }

  end(): void {
    this.#ended = true
    this.#closed()
    this.#wake?.()
  }

  /** Resolves with the next message, at the end, or after a timeout. */
  async #silence(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>(resolve => {
      this.#wake = resolve
      timer = setTimeout(resolve, SILENCE_MS).unref()
    })
    clearTimeout(timer)
    this.#wake = undefined
  }
}
