/** Keeps what jobs made: copies results to files while they arrive, and checks what they are. */
import type { Job, JobResult } from '../core/ports.ts'
import { errors } from '../lib/error.ts'
import type { JobsContext } from './context.ts'
import { InlineField } from './inline-field.ts'

/** Largest share of the stored results that one organization may have. */
const TENANT_SHARE = 1 / 2

type Blob = Extract<JobResult, { kind: 'blob' }>

/** Writes blobs within `max_result` and the organization's share of `max_kept`. */
export class ResultKeeper {
  readonly #context: JobsContext
  readonly #copies = new Copies()

  constructor(context: JobsContext) {
    this.#context = context
  }

  /**
   * Throws a GatewayError for what is too large or of another type; undefined where there is no room for it. Then nothing
   * is left.
   */
  async keep(job: Job, chunks: AsyncIterable<Buffer>): Promise<Blob | undefined> {
    const { blobs, kinds, options, store } = this.#context
    const { max_result, max_kept } = options()
    const { all, own } = await store.keptBytes(job.orgId)
    const room = { all: max_kept - all, own: Math.floor(max_kept * TENANT_SHARE) - own }
    if (room.all <= 0 || room.own <= 0) return undefined
    const full = errors.invalidAnswer('there is no room for its result')
    const copy = this.#copies.begin(job.orgId, room)
    let isKept = false
    try {
      const tooLarge = () => errors.invalidAnswer(`its result is larger than ${max_result} bytes`)
      const written = await blobs.write(within(chunks, copy, full), max_result, tooLarge)
      const { head, ...kept } = written
      const type = kinds.get(job.kind)!.resultType(head)
      isKept = type !== undefined
      if (type !== undefined) return { kind: 'blob', ...kept, type }
      await blobs.remove(kept.blob)
    } catch (thrown) {
      if (thrown === full) return undefined
      throw thrown
    } finally {
      copy.end(isKept)
    }
    throw errors.invalidAnswer('its result is not of the requested type')
  }

  /** Text in whose field `name` a result may stand as base64: the bytes kept without it, and the result in its file. */
  async readInline(job: Job, chunks: AsyncIterable<Buffer>, name: string, most: number) {
    const field = new InlineField(name)
    const bytes = bytesOf(field, chunks, most)
    const first = await bytes.next()
    const blob = first.done ? undefined : await this.keep(job, behind(first.value, bytes))
    if (!first.done && !blob) throw errors.invalidAnswer('there is no room for its result')
    return { kept: field.takeKept(), blob }
  }

  async discard(result: JobResult | undefined): Promise<void> {
    if (result?.kind === 'blob') await this.#context.blobs.remove(result.blob)
  }
}

async function* within(chunks: AsyncIterable<Buffer>, copy: Copy, full: Error): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    if (!copy.take(chunk.length)) throw full
    yield chunk
  }
}

async function* bytesOf(field: InlineField, chunks: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    const bytes = field.push(chunk)
    if (field.size > most) throw errors.invalidAnswer(`it is larger than ${most} bytes`)
    if (bytes.length > 0) yield bytes
  }
}

async function* behind(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first
  yield* rest
}

/** One copy that runs. */
interface Copy {
  /** Counts a chunk. False where there is no room for it: then nothing of the copy stays. */
  take(bytes: number): boolean
  /** `kept`: what it wrote stays, and the store counts it from now on. */
  end(kept: boolean): void
}

interface Counted {
  /** Maximum bytes that all copies together may write, including this one. */
  readonly limit: number
  own: number
}

/** Counts the bytes of concurrent copies: the store counts a result when its copy has ended. */
class Written {
  /** Bytes of running copies, and of copies kept since the first of these began. */
  #bytes = 0
  #unfinished = 0
  /** Copies that use it. */
  running = 0

  /** `room`: bytes that are free by the store's count. */
  begin(room: number): Counted {
    return { limit: this.#bytes + room - this.#unfinished, own: 0 }
  }

  /** Whether it fits. */
  take(copy: Counted, bytes: number): boolean {
    copy.own += bytes
    this.#unfinished += bytes
    this.#bytes += bytes
    return this.#bytes <= copy.limit
  }

  /** Subtracts a copy that was deleted (`kept` false) or has finished. */
  release(copy: Counted, kept: boolean): void {
    this.#unfinished -= copy.own
    if (!kept) this.#bytes -= copy.own
    copy.own = 0
  }
}

/** All copies of this process, and those of each organization. */
class Copies {
  readonly #all = new Written()
  readonly #own = new Map<string, Written>()

  /** `room`: bytes that are free by the store's count, of everything and of the organization's share. */
  begin(orgId: string, room: { readonly all: number; readonly own: number }): Copy {
    const everything = this.#all
    const share = this.#own.get(orgId) ?? new Written()
    this.#own.set(orgId, share)
    share.running++
    const [ofAll, ofShare] = [everything.begin(room.all), share.begin(room.own)]
    const release = (kept: boolean) => {
      everything.release(ofAll, kept)
      share.release(ofShare, kept)
    }
    return {
      take(bytes) {
        const fits = everything.take(ofAll, bytes)
        if (share.take(ofShare, bytes) && fits) return true
        release(false)
        return false
      },
      end: kept => {
        release(kept)
        share.running--
        if (share.running === 0) this.#own.delete(orgId)
      },
    }
  }
}
