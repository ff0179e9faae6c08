/**
 * Answers with large images: placeholders represent them until the rest is written; then they are inserted in steps.
 */
import type { Encoded, Encoder } from '../core/codec.ts'
import type { GatewayError } from '../core/error.ts'
import type { Event } from '../core/event.ts'
import { hasMarks, markOf, splitAtMarks } from '../core/string-marks.ts'
import { type ByteSteps, writeString } from '../core/stringify-steps.ts'
import { MAX_DATA_HEAD } from '../core/wire.ts'
import { turns } from '../lib/turns.ts'

/** In characters; at most two thousand smaller ones fit into an answer. */
const LARGE = 16 * 1024

/** Inserts images for their placeholders, for a stored answer. */
export type Restore = (text: string) => Promise<string>

/** An encoder of text whose only large parts are images. */
export interface TextEncoder extends Omit<Encoder, 'conclude' | 'headers'> {
  write(batch: readonly Event[]): string | undefined
  conclude?(error: GatewayError | undefined, restore: Restore): Promise<void> | undefined
  end(): string
  fail(error: GatewayError): string | undefined
}

/** Keeps images of 16,384 characters and more out of `inner`'s texts. */
export class LargeImages implements Encoder {
  readonly #inner: TextEncoder
  readonly #tenant: string
  /** Base64; made with the first of them. */
  #images: string[] | undefined = undefined

  /** `tenant`: in whose turns the images are inserted. */
  constructor(inner: TextEncoder, tenant: string) {
    this.#inner = inner
    this.#tenant = tenant
  }

  get contentType(): string {
    return this.#inner.contentType
  }

  write(batch: readonly Event[]): Encoded | undefined {
    const out = this.#inner.write(batch.some(isLarge) ? batch.map(event => this.#marked(event)) : batch)
    return out && this.#restored(out)
  }

  conclude(error?: GatewayError): Promise<void> | undefined {
    return this.#inner.conclude?.(error, text => this.#restore(text))
  }

  end(): Encoded {
    return this.#restored(this.#inner.end())
  }

  fail(error: GatewayError): Encoded | undefined {
    const out = this.#inner.fail(error)
    return out && this.#restored(out)
  }

  #marked(event: Event): Event {
    if (!isLarge(event)) return event
    const data = event.url.indexOf(',') + 1
    this.#images ??= []
    const mark = markOf(this.#images.length)
    this.#images.push(event.url.slice(data))
    return { type: 'image', choice: event.choice, url: event.url.slice(0, data) + mark }
  }

  async #restore(text: string): Promise<string> {
    const out = this.#restored(text)
    return typeof out === 'string' ? out : Buffer.concat(await turns.run(this.#tenant, out)).toString()
  }

  #restored(out: string): string | ByteSteps {
    return this.#images && hasMarks(out) ? restored(out, this.#images) : out
  }
}

const isLarge = (event: Event): event is Extract<Event, { type: 'image' }> =>
  event.type === 'image' &&
  event.url.length >= LARGE &&
  event.url.startsWith('data:') &&
  event.url.slice(0, MAX_DATA_HEAD).includes(',')

function* restored(out: string, images: readonly string[]): ByteSteps {
  const pieces: Buffer[] = []
  for (const { index, text } of splitAtMarks(out)) {
    if (index >= 0) yield* writeString(images[index]!, pieces)
    pieces.push(Buffer.from(text))
  }
  return pieces
}
