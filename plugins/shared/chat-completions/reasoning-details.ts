/**
 * `reasoning_details`: structured reasoning that its provider requires back unchanged. A client gets the text of each
 * entry in plain form and the rest (type, id, signature, ciphertext) as one sealed value.
 */
import {
  type Event,
  entriesIn,
  indexIn,
  isObject,
  type Json,
  jsonIn,
  MAX_REASONING_BLOCKS,
  type Message,
  type ReasoningEvent,
  seal,
  type Target,
  textIn,
  textKey,
  tooManyBlocks,
  unseal,
  weigh,
} from '../../../src/plugin.ts'

interface Block {
  readonly number: number
  /** The first id of its entries; undefined while they have none. */
  id: string | undefined
  readonly type: string
  readonly index: number
  /** The entry without its text. */
  readonly rest: Json
  /** Its text so far. */
  text: string
  /** True once an entry repeated all earlier text, false once one did not. */
  cumulative: boolean | undefined
  sealed: boolean
}

/** The text field of an entry of this type. */
const textField = (type: unknown): 'summary' | 'text' => (type === 'reasoning.summary' ? 'summary' : 'text')

/** Blocks of one type and index. An entry belongs to the last one that its id does not tell apart. */
class Blocks {
  #last: Block | undefined
  readonly #byId = new Map<string, Block>()
  /** Without an id, in order. */
  readonly #unnamed: Block[] = []

  add(block: Block): void {
    this.#last = block
    if (block.id === undefined) this.#unnamed.push(block)
    else this.#byId.set(textKey(block.id), block)
  }

  find(id: string | undefined): Block | undefined {
    if (id === undefined) return this.#last
    const named = this.#byId.get(textKey(id))
    const unnamed = this.#unnamed.at(-1)
    return named && (!unnamed || named.number > unnamed.number) ? named : unnamed
  }

  /** Its last block without an id has this one. */
  name(id: string): void {
    const block = this.#unnamed.pop()!
    block.id = id
    this.#byId.set(textKey(id), block)
  }
}

/** Reads the entries of one choice. */
export class ReasoningDetails {
  readonly #choice: number
  readonly #target: Target
  /** Blocks by type and index. */
  readonly #blocks = new Map<string, Blocks>()
  #count = 0
  /** Characters of what is kept beside the text. */
  kept = 0
  #open: Block | undefined
  #repeats = false

  constructor(choice: number, target: Target) {
    this.#choice = choice
    this.#target = target
  }

  /**
   * Returns whether the entries contained any text, new or repeated. `said`: reasoning that came without details; entries
   * that are all of it once more add their signatures alone.
   */
  read(entries: readonly unknown[], out: Event[], said = ''): boolean {
    let hasText = false
    this.#repeats = said !== '' && said === textOf(entries)
    for (const [position, entry] of entriesIn(entries).entries()) {
      if (!isObject(entry)) continue
      const type = typeof entry.type === 'string' ? entry.type : 'reasoning.text'
      const text = entry[textField(type)]
      if (typeof text === 'string' && text !== '') hasText = true
      this.#entry(entry, type, typeof text === 'string' ? text : '', indexIn(entry.index) ?? position, out)
    }
    return hasText
  }

  /** Ends the open block: its sealed part follows its text directly. */
  seal(out: Event[]): void {
    const block = this.#open
    if (!block) return
    this.#open = undefined
    block.sealed = true
    const value = seal(this.#target, JSON.stringify(block.rest))
    const event = this.#event(block, '')
    if (typeof block.rest.data === 'string') event.data = value
    else event.signature = value
    out.push(event)
  }

  #entry(entry: Json, type: string, text: string, index: number, out: Event[]): void {
    const id = textIn(entry.id)
    const blocks = this.#blocksOf(type, index)
    const known = blocks.find(id)
    const fresh = this.#repeats ? '' : known ? beyond(known, text) : text
    let block = known
    if (!block) block = this.#begin(type, index, id)
    else if (block.sealed) {
      if (fresh === '' && !tellsMore(block, entry)) return
      // A sealed block cannot grow: later content becomes another block.
      block = this.#begin(type, index, id)
      block.cumulative = known?.cumulative
      block.text = known?.text ?? ''
    }
    if (block !== this.#open) this.seal(out)
    this.#open = block
    if (block.id === undefined && id !== undefined) blocks.name(id)
    for (const key in entry) {
      if (key !== 'text' && key !== 'summary' && (entry[key] !== null || !(key in block.rest))) {
        const before = key in block.rest ? weigh(block.rest[key]) : -key.length
        this.kept += Math.max(0, weigh(entry[key]) - before)
        block.rest[key] = entry[key]
      }
    }
    if (this.#repeats && text !== '') {
      block.rest[textField(type)] = text
      this.kept += text.length
    }
    if (fresh === '') return
    block.text += fresh
    out.push(this.#event(block, fresh))
  }

  #blocksOf(type: string, index: number): Blocks {
    const key = textKey(`${index} ${type}`)
    let blocks = this.#blocks.get(key)
    if (!blocks) {
      blocks = new Blocks()
      this.#blocks.set(key, blocks)
    }
    return blocks
  }

  #begin(type: string, index: number, id: string | undefined): Block {
    if (this.#count === MAX_REASONING_BLOCKS) throw tooManyBlocks()
    const number = this.#count++
    const block: Block = { number, id, type, index, rest: {}, text: '', cumulative: undefined, sealed: false }
    this.#blocksOf(type, index).add(block)
    return block
  }

  #event(block: Block, text: string): ReasoningEvent {
    const format = typeof block.rest.format === 'string' ? block.rest.format : 'unknown'
    return { type: 'reasoning', choice: this.#choice, text, format, block: block.number }
  }
}

const textOf = (entries: readonly unknown[]): string =>
  entriesIn(entries)
    .map(entry => (isObject(entry) && textIn(entry[textField(entry.type)])) || '')
    .join('')

const tellsMore = ({ rest }: Block, entry: Json): boolean =>
  Object.keys(entry).some(
    key =>
      key !== 'text' &&
      key !== 'summary' &&
      entry[key] !== null &&
      typeof entry[key] !== 'object' &&
      entry[key] !== rest[key],
  )

/** The new part of `text`: some providers repeat all earlier text (C24). */
function beyond(block: Block, text: string): string {
  if (text === '' || block.text === '' || block.cumulative === false) return text
  const isLonger = text.length > block.text.length
  const repeats =
    (isLonger || (block.cumulative === true && text.length === block.text.length)) && text.startsWith(block.text)
  block.cumulative ??= repeats
  return repeats ? text.slice(block.text.length) : text
}

/**
 * The entries of an earlier answer made by `target`. Text extends to the seal that closes its block, so it does not
 * matter whether the client joined the pieces of a stream.
 */
export function replayDetails(details: Message['reasoning_details'], target: Target): Json[] {
  const entries: Json[] = []
  let text = ''
  for (const detail of details ?? []) {
    text += detail.text ?? ''
    const sealed = detail.data ?? detail.signature
    if (sealed == null) continue
    const rest = parsedSeal(unseal(target, sealed))
    const field = rest && textField(rest.type)
    // Sealed with its text where that came without details before.
    if (rest) entries.push(typeof rest.data === 'string' || field! in rest ? rest : { ...rest, [field!]: text })
    text = ''
  }
  return entries
}

/** Reads a sealed value; undefined for none, and for one that a client has modified. */
export function parsedSeal(json: string | undefined): Json | undefined {
  const rest = json === undefined ? undefined : jsonIn(json)
  return isObject(rest) ? rest : undefined
}
