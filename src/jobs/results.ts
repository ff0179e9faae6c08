/** Keeps what jobs made: copies results to files while they arrive, and checks what they are. */
import { errors } from '../core/error.ts'
import type { Job, JobResult } from '../core/ports.ts'
import type { JobsContext } from './context.ts'
import { InlineField } from './inline-field.ts'

type Blob = Extract<JobResult, { kind: 'blob' }>

export class ResultKeeper {
  readonly #context: JobsContext

  constructor(context: JobsContext) {
    this.#context = context
  }

  /** Throws a GatewayError for what is too large or of another type; then nothing is left. */
  async keep(job: Job, chunks: AsyncIterable<Buffer>): Promise<Blob> {
    const { blobs, kinds, options } = this.#context
    const { max_result: most } = options()
    const tooLarge = () => errors.invalidAnswer(`its result is larger than ${most} bytes`)
    const { blob, bytes, etag, head } = await blobs.write(chunks, most, tooLarge)
    const type = kinds.get(job.kind)!.resultType(head)
    if (type !== undefined) return { kind: 'blob', blob, bytes, etag, type }
    await blobs.remove(blob)
    throw errors.invalidAnswer('its result is not of the type that was asked for')
  }

  /** Text in whose field `name` a result may stand as base64: without it, and the result as it is kept. */
  async readInline(job: Job, chunks: AsyncIterable<Buffer>, name: string, most: number) {
    const field = new InlineField(name)
    const bytes = bytesOf(field, chunks, most)
    const first = await bytes.next()
    const blob = first.done ? undefined : await this.keep(job, behind(first.value, bytes))
    return { text: field.text, blob }
  }

  async discard(result: JobResult | undefined): Promise<void> {
    if (result?.kind === 'blob') await this.#context.blobs.remove(result.blob)
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
