/** The function calls of one candidate. They arrive whole, or are opened, filled and closed in several parts. */
import {
  type Event,
  entriesIn,
  errors,
  type GatewayError,
  type Json,
  seal,
  type Target,
  textIn,
  textKey,
  toolArguments,
} from '../../src/plugin.ts'
import { PartialArgs, type PathCount } from './partial-args.ts'
import { fromWireName } from './tool-name.ts'

interface OpenCall {
  readonly name: string
  readonly id: string | undefined
  readonly signature: string | undefined
  readonly args: PartialArgs
}

/** Emits each call once it is whole; a call without an id gets one from the answer's id. */
export class Calls {
  readonly #choice: number
  readonly #target: Target
  readonly #ids = new Set<string>()
  readonly #ofAnswer: PathCount
  #count = 0
  #open: OpenCall | undefined

  constructor(choice: number, target: Target, ofAnswer: PathCount) {
    this.#choice = choice
    this.#target = target
    this.#ofAnswer = ofAnswer
  }

  get any(): boolean {
    return this.#count > 0
  }

  /** Reads the `functionCall` of a part; returns an error for an unusable call. */
  read(call: Json, signature: string | undefined, answerId: string, out: Event[]): GatewayError | undefined {
    const name = textIn(call.name)
    const id = textIn(call.id)
    const { args, partialArgs: pieces } = call
    const continues = call.willContinue === true
    if (name !== undefined) {
      this.close(answerId, out)
      if (continues || Array.isArray(pieces))
        this.#open = { name, id, signature, args: new PartialArgs(this.#ofAnswer) }
      else this.#emit({ name, id, signature }, toolArguments(args), answerId, out)
    } else if (!this.#open) {
      // An end without a beginning is ignored.
      return args == null && pieces == null ? undefined : errors.invalidAnswer('a function call has no name')
    }
    for (const piece of this.#open ? entriesIn(pieces) : []) {
      if (!this.#open?.args.add(piece)) return errors.invalidAnswer('the arguments of a function call are unreadable')
    }
    if (!continues) this.close(answerId, out)
    return undefined
  }

  /** Ends an open call that the wire did not close. */
  close(answerId: string, out: Event[]): void {
    const open = this.#open
    if (!open) return
    this.#open = undefined
    this.#emit(open, open.args.toString(), answerId, out)
  }

  #emit(call: Omit<OpenCall, 'args'>, args: string, answerId: string, out: Event[]): void {
    this.#ofAnswer.begin()
    this.#ofAnswer.wrote(args)
    const index = this.#count++
    // Ids are usually absent; an id already used by another call would join the two.
    const known = call.id !== undefined && !this.#ids.has(textKey(call.id))
    const id = known ? call.id! : `call_${answerId}_${this.#choice}_${index}`
    this.#ids.add(textKey(id))
    out.push({
      type: 'tool',
      choice: this.#choice,
      index,
      id,
      name: fromWireName(call.name),
      args,
      ...(call.signature !== undefined && { signature: seal(this.#target, call.signature) }),
    })
  }
}
