/** Keeps the credential of a request out of its answer, whatever part of it the provider repeats it in. */
import type { GatewayError } from '../core/error.ts'
import type { Event } from '../core/event.ts'
import { isObject, textIn } from '../core/json.ts'
import { MASK, type Mask, PiecewiseMask } from '../lib/mask.ts'

/** The same error without the credential. */
export function maskedError(error: GatewayError, mask: Mask): GatewayError {
  const message = mask.strict(error.message)
  const param = error.param && mask.strict(error.param)
  const code = error.code && mask.strict(error.code)
  const detail = error.detail && mask.strict(error.detail)
  const same = message === error.message && param === error.param && code === error.code && detail === error.detail
  return same ? error : error.with({ message, param, code, detail })
}

/** Kinds of text; a key of pieces holds one in its lowest bits. */
const TEXT = 0
const REASONING = 1
const REFUSAL = 2
const TOOL = 3
const LOGPROBS = 4
const KINDS = 8
const INDEXES = 1024
/** Values that nest deeper are not shown. */
const MAX_DEPTH = 200

/** Masks the events of one answer, in place. Skips images and numbers. */
export class AnswerMask {
  readonly #mask: Mask
  /** The text that came last: most answers have no other. */
  #lastKey = -1
  #last: PiecewiseMask | undefined
  #others: Map<number, PiecewiseMask> | undefined

  constructor(mask: Mask) {
    this.#mask = mask
  }

  apply(event: Event): void {
    switch (event.type) {
      case 'text':
        event.text = this.#next(TEXT, event.choice, event.text)
        return
      case 'reasoning':
        if (event.text !== '') event.text = this.#next(REASONING, event.choice, event.text)
        if (event.signature !== undefined) event.signature = this.#mask.answer(event.signature)
        if (event.data !== undefined) event.data = this.#mask.answer(event.data)
        return
      case 'refusal':
        event.text = this.#next(REFUSAL, event.choice, event.text)
        return
      case 'tool':
        if (event.args !== undefined) event.args = this.#next(TOOL, event.choice + event.index * INDEXES, event.args)
        if (event.id !== undefined) event.id = this.#mask.answer(event.id)
        if (event.name !== undefined) event.name = this.#mask.answer(event.name)
        if (event.signature !== undefined) event.signature = this.#mask.answer(event.signature)
        if (event.own) event.own = this.#deep(event.own)
        return
      case 'image':
        if (!event.url.startsWith('data:')) event.url = this.#mask.answer(event.url)
        return
      case 'partial_image':
        event.description = this.#deep(event.description, 1)
        return
      case 'result':
        if (event.value !== undefined) event.value = this.#deep(event.value, 1, true)
        return
      case 'error':
        event.error = maskedError(event.error, this.#mask)
        return
      case 'logprobs':
        event.tokens = this.#tokens(event.choice, event.tokens)
        return
      case 'source':
      case 'start':
      case 'passage':
      case 'native':
      case 'finish':
      case 'tier': {
        const clean = this.#deep(event)
        if (clean !== event) Object.assign(event, clean)
      }
    }
  }

  #next(kind: number, of: number, text: string): string {
    const key = of * KINDS + kind
    if (key !== this.#lastKey) this.#turnTo(key)
    return this.#last!.next(text)
  }

  #turnTo(key: number): void {
    if (this.#last) {
      this.#others ??= new Map()
      this.#others.set(this.#lastKey, this.#last)
    }
    this.#last = this.#others?.get(key) ?? new PiecewiseMask(this.#mask)
    this.#lastKey = key
  }

  /** Tokens repeat the text in small pieces; where a credential goes through them, none is passed on. */
  #tokens(choice: number, tokens: readonly unknown[]): readonly unknown[] {
    const text = tokens.map(token => (isObject(token) && textIn(token.token)) || '').join('')
    return this.#next(LOGPROBS, choice, text) === text ? tokens : []
  }

  /** Returns the same value when nothing is masked. `holdsFiles`: skips long strings, which may be base64. */
  #deep<T>(value: T, depth?: number, holdsFiles?: boolean): T
  #deep(value: unknown, depth = 0, holdsFiles = false): unknown {
    if (typeof value === 'string') return holdsFiles && isData(value) ? value : this.#mask.answer(value)
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
    if (depth > MAX_DEPTH) return MASK
    if (Array.isArray(value)) return this.#items(value, depth + 1, holdsFiles)
    let changed: Record<string, unknown> | undefined
    for (const name in value) {
      const member = (value as Record<string, unknown>)[name]
      const clean = this.#deep<unknown>(member, depth + 1, holdsFiles)
      // An event's own members are named by us.
      const key = depth === 0 ? name : this.#mask.answer(name)
      if (clean === member && key === name) continue
      changed ??= { ...value }
      if (key !== name) delete changed[name]
      changed[key] = clean
    }
    return changed ?? value
  }

  /** By a loop: an embedding has thousands of numbers. */
  #items(list: readonly unknown[], depth: number, holdsFiles: boolean): readonly unknown[] {
    let changed: unknown[] | undefined
    for (let index = 0; index < list.length; index++) {
      const item = list[index]
      if (typeof item === 'number') continue
      const clean = this.#deep(item, depth, holdsFiles)
      if (clean === item) continue
      changed ??= list.slice()
      changed[index] = clean
    }
    return changed ?? list
  }
}

/** Base64 of a file or a vector: large, and nothing that a provider writes a credential into. */
const isData = (text: string): boolean =>
  text.startsWith('data:') || (text.length > LONGEST_WORD && !text.includes(' '))
const LONGEST_WORD = 16 * 1024
