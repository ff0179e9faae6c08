/** Counts what an answer holds, whatever its wire, against the bounds that hold for all. */

import type { Event, ToolEvent } from '../core/event.ts'
import {
  checkBlocks,
  excessiveArguments,
  MAX_CALL_CHARACTERS,
  MAX_CALLS,
  MAX_FRAME_CHARACTERS,
  MAX_REASONING_BLOCKS,
  MAX_TEXT_CHARACTERS,
  tooLongCalls,
  tooLongFrame,
  tooLongText,
  tooManyBlocks,
  tooManyCalls,
} from '../json/answer-bounds.ts'
import { CALL_BOUNDS, Count, Shape } from '../json/shape.ts'
import { weigh } from '../json/size.ts'

/** More blocks than a choice may have; makes one number of a choice and a block. */
const BLOCKS_PER_CHOICE = 1e6
/** Characters of a frame, beside what it passes on, that are not kept: names, ids and counts. */
const ENVELOPE_CHARACTERS = 4096
/** Fewer events of a small frame are not large either. */
const MAX_UNCHECKED_EVENTS = 64
/** Characters of a waiting event besides its text. */
const EVENT_CHARACTERS = 64

/** The counts of one answer, as its events come. */
export class AnswerCounter {
  #calls = 0
  /** The arguments of each call, as far as they came: other wires parse them. */
  #args: Map<number, Shape> | undefined
  readonly #count = new Count()
  #blocks: Set<number> | undefined
  #kept = 0
  /** Characters of arguments. */
  #called = 0
  /** Characters of text and reasoning. */
  #text = 0
  readonly #isHeld: boolean
  readonly #countsRest: boolean
  /** Text after a call, or in a phase, may wait for the end: some clients' wires have an order of their own. */
  #waits = false
  /** The kind of the last text, how often it has changed, and what else is a part by itself. */
  #kind: Event['type'] | undefined
  #parts = 0

  /**
   * `isHeld`: all of it is held until its end. `countsRest`: what a frame holds beside its events counts as kept, since
   * the decoder does not report what it keeps.
   */
  constructor(isHeld: boolean, countsRest: boolean) {
    this.#isHeld = isHeld
    this.#countsRest = countsRest
  }

  /** Characters that may be kept of the answer until its end, by a decoder or for the client. */
  get kept(): number {
    return this.#kept
  }

  /** The events of a frame of so many characters. Throws the failure of an answer that passes a bound. */
  add(events: readonly Event[], characters: number): void {
    // One frame may bring the kept parts of many.
    const isLarge = characters > MAX_FRAME_CHARACTERS || this.#kept > MAX_FRAME_CHARACTERS
    if (isLarge || events.length > MAX_UNCHECKED_EVENTS) checkFrame(events)
    let added = 0
    /** Characters that the client gets now. */
    let passed = 0
    for (let at = 0; at < events.length; at++) {
      const event = events[at]!
      switch (event.type) {
        case 'text':
          // Passes on a stream, however long it is.
          this.#text += event.text.length
          passed += event.text.length
          if (this.#isHeld) added += event.text.length
          else if (this.#waits) added += event.text.length + EVENT_CHARACTERS
          if (event.choice === 0) this.#run(event.type)
          break
        case 'reasoning':
          if (event.choice === 0) this.#run(event.type)
          this.#text += event.text.length
          passed += event.text.length
          added += event.signature === undefined && event.data === undefined ? event.text.length : characters
          if (this.#waits) added += EVENT_CHARACTERS
          if (event.block !== undefined) this.#block(event.choice * BLOCKS_PER_CHOICE + event.block)
          break
        case 'phase':
          this.#waits = true
          checkBlocks(++this.#parts)
          added = characters
          break
        case 'refusal':
          if (event.choice === 0) this.#run(event.type)
          added = characters
          break
        case 'native':
        case 'image':
        case 'passage':
          checkBlocks(++this.#parts)
          added = characters
          break
        case 'tool':
          this.#waits = true
          added += event.args?.length ?? 0
          passed += event.args?.length ?? 0
          this.#tool(event)
          break
        case 'logprobs':
          if (this.#isHeld) added = characters
          else if (characters > ENVELOPE_CHARACTERS) passed += weigh(event.tokens)
          break
        case 'usage':
        case 'progress':
          break
        case 'bytes':
        case 'partial_image':
          passed = characters
          break
        case 'source':
          this.#text += event.url.length + (event.title?.length ?? 0)
          checkBlocks(++this.#parts)
          added = characters
          break
        default:
          added = characters
      }
    }
    if (this.#countsRest) added += Math.max(0, characters - passed - ENVELOPE_CHARACTERS)
    if (this.#isHeld && this.#text > MAX_TEXT_CHARACTERS) throw tooLongText()
    this.#kept += events.length === 0 ? characters : Math.min(added, characters)
  }

  /** Text and reasoning by turns are as many blocks, which may wait for the end; wires that have blocks show one choice. */
  #run(kind: Event['type']): void {
    if (!(this.#isHeld || this.#waits) || kind === this.#kind) return
    this.#kind = kind
    checkBlocks(++this.#parts)
  }

  #block(key: number): void {
    this.#blocks ??= new Set()
    this.#blocks.add(key)
    if (this.#blocks.size > MAX_REASONING_BLOCKS) throw tooManyBlocks()
  }

  #tool({ choice, index, id, args, custom }: ToolEvent): void {
    if (id !== undefined && ++this.#calls > MAX_CALLS) throw tooManyCalls()
    if (!args || custom) return
    this.#called += args.length
    if (this.#called > MAX_CALL_CHARACTERS) throw tooLongCalls()
    const key = choice * BLOCKS_PER_CHOICE + index
    this.#args ??= new Map()
    let shape = this.#args.get(key)
    if (!shape) {
      shape = new Shape(CALL_BOUNDS, this.#count)
      this.#args.set(key, shape)
    }
    shape.add(args)
    if (shape.excess) throw excessiveArguments(shape)
  }
}

/** Characters of events that their model has written; media and log probabilities are no text. */
export function writtenIn(events: readonly Event[]): number {
  let characters = 0
  for (const event of events) if (!isMedia(event) && event.type !== 'logprobs') characters += weigh(event, 0)
  return characters
}

/** Media apart, the events of a frame are searched for credentials, and encoded for the client, in one step each. */
function checkFrame(events: readonly Event[]): void {
  let characters = 0
  for (const event of events) if (!isMedia(event)) characters += weigh(event)
  if (characters > MAX_FRAME_CHARACTERS) throw tooLongFrame()
}

/** Results have bounds of their operations. */
const isMedia = (event: Event): boolean =>
  event.type === 'image' ? event.url.startsWith('data:') : MEDIA.has(event.type)
const MEDIA: ReadonlySet<Event['type']> = new Set<Event['type']>(['bytes', 'partial_image', 'result', 'error'])
