/** Describes each operation to the kernel, so that no part of it tests for one. Rows: `src/operations`. */

import type { Json } from '../json/json.ts'
import type { Unaffordable } from '../lib/error.ts'
import type { JobOperation } from './job.ts'
import type { Media } from './media.ts'
import type { Price, Terms } from './money.ts'
import type { Op, Ops } from './ops.ts'
import type { FanOut, Mapping, Model, Target, Translator } from './translator.ts'
import type { Usage } from './usage.ts'
import type { SentOutput } from './wire.ts'

/** A row of the table of operations: chat, embeddings, images and so on. */
export interface Operation<O extends Op = Op> {
  /** The key of `wires:` in manifests, and what a translator's `op` names. */
  readonly name: O
  /** Whether a model whose file lists no operations has this one, by what it takes and puts out. */
  impliedBy(model: Pick<Model, 'input' | 'output'>): boolean
  /** Whether a price list has a rate for all that answers of a model are charged for. */
  isPriced(price: Price, model: Pick<Model, 'output' | 'tokenizer'>): boolean
  /** Requirements of a request on a mapping, in the order in which errors name them. */
  readonly requirements: readonly Requirement<Ops[O]>[]
  /** Bytes of the texts of a request that a model reads; media counts as nothing here. */
  promptSize(request: Readonly<Ops[O]>): number
  /** Code points that a request is charged for where its model is priced by them; its bytes where this is left out. */
  characters?(request: Readonly<Ops[O]>): number
  /** Bytes of earlier reasoning, which a provider with `reasoningReplay` reads as well. */
  reasoningSize?(request: Readonly<Ops[O]>): number
  /** Bytes that are data of the provider with this id, which reads them and no other one. */
  sealedSize?(request: Readonly<Ops[O]>, provider: string): number
  /** How many prompts of a request are read apart, each within the model's context; one where it is left out. */
  prompts?(request: Readonly<Ops[O]>): number
  /** Number of answers, and the caller's token limit of each. Absent when answers count no tokens. */
  output?(request: Readonly<Ops[O]>): OutputBound
  /**
   * Returns the request with a lower limit on each answer. Present where `output` is, and where a wire sends its own
   * limit.
   */
  bounded?(request: Readonly<Ops[O]>, tokens: number): Ops[O]
  /** Looks into the files of a request, once before it is planned and held for; undefined where it holds none. */
  inspect?(request: Ops[O]): Promise<void> | undefined
  /** Returns the content of a request besides text. */
  media?(request: Readonly<Ops[O]>): Media
  /**
   * How long an answer becomes whose caller can set no limit, where its wire sends none: held for as `least` at first, which
   * grows as the answer is measured, and as `limit` where it cannot be ended. Undefined where answers cost no tokens.
   */
  expectedOutput?(request: Readonly<Ops[O]>, mapping: Mapping): SentOutput | undefined
  /** Text of the 402, when neither a prompt nor the caller's limit explains it. */
  readonly unaffordable?: Unaffordable
  /** Usage besides tokens that the request may cause at the mapping. */
  extras?(request: Readonly<Ops[O]>, mapping: Mapping): Usage
  /**
   * Returns usage that may exceed the estimate: files of unknown size, or files that the provider fetches. `mapping`
   * may not be known yet.
   */
  unmeasured?(request: Readonly<Ops[O]>, mapping?: Mapping): Usage | undefined
  /** Whether a tool of the request runs at its provider, which may read the whole prompt again after each of its calls. */
  loops?(request: Readonly<Ops[O]>): boolean
  /** Measures an unreported answer of bytes as it comes, up to `limit` tokens; undefined where that costs nothing. */
  measure?(contentType: string, model: Model, limit: number | undefined): AnswerMeasure | undefined
  /** Returns the requested facts, besides usage, on which the price depends. */
  terms?(request: Readonly<Ops[O]>): Terms
  /** Serves the operation by the mapping's wires for another one, where it has none (docs/contract.md#bridges). */
  bridge?(wires: ReadonlyMap<Op, Translator>, model: Pick<Model, 'output' | 'operations'>): Translator | undefined
  /**
   * The request as `target` is to get it: with what is for its provider alone, and what the request leaves open. Itself
   * where nothing changes. `caches`: see `Mapping.autoCache`. Throws a 400 for what its credential may not be used for.
   */
  adapted?(request: Readonly<Ops[O]>, target: Target, caches: boolean): Readonly<Ops[O]>
  /** Requests that stand for several, whatever wire they go by. */
  readonly fanOut?: FanOut<O>
  /**
   * Takes from a body, of whichever client wire, what routes its request. Undefined where it holds nothing of that.
   * Throws the 400 that names the field which is wrong.
   */
  routed?(body: unknown): RoutedBody<Ops[O]> | undefined
  /** The option of the `route` filter that lists what `auto` means here; `auto` where nothing is said. */
  readonly autoOption?: string
  /** Fields that only tune an answer, with the parameter that a mapping must list to be sent them. */
  readonly tuning: Readonly<Partial<Record<keyof Ops[O], string>>>
  /** An organization's rules of models and prices do not apply: those of providers and addresses do. */
  readonly ignoresModelRules?: true
  /** Its requests open sessions over a WebSocket, each part of which is paid for by itself. */
  readonly isSession?: true
  /** Its answers come after its requests have ended. */
  readonly job?: JobOperation<Ops[O]>
  /** Bytes that an answer may have where it is held; 32 MiB where it is left out. */
  readonly answerBytes?: number
  /** Answers are never kept for the same request: audio, which is not held. */
  readonly neverReplayed?: true
  /** Answers of the simulated provider, by path after its base address. The path may have parameters. */
  readonly demo?: Readonly<Record<string, Simulation>>
  /** Sessions of the simulated provider over WebSockets, by path. */
  readonly demoSession?: Readonly<Record<string, SimulatedSession>>
}

/** Estimates what the bytes of an answer come to. */
export interface AnswerMeasure {
  add(bytes: Buffer): void
  /** Completion tokens so far. */
  readonly tokens: number
  /** Usage by axes. */
  readonly usage: Usage
}

/** A request's body once its routing fields are read. */
export interface RoutedBody<R> {
  /** Without what no wire has; `model` is always there. */
  readonly body: unknown
  /** Fields to set on the canonical request. */
  readonly fields: Partial<R>
}

/** How long an answer may become. */
interface OutputBound {
  readonly choices: number
  /** Tokens of each; undefined when the caller sets none. */
  readonly limit: number | undefined
}

/** A requirement of a request on a mapping. The documented 400s of docs/contract.md#errors are such rows. */
export interface Requirement<R> {
  readonly param: string
  /**
   * Mappings that do not meet it are skipped only while another one does: an estimate, or a field that a wire may
   * drop, is no reason to refuse a request.
   */
  readonly soft?: boolean
  /** Completes «No provider of "m" supports …». */
  readonly what: string
  readonly code?: string
  /** Status of the error; 400 when absent. */
  readonly status?: 413
  /** Returns the values that a mapping accepts instead: a maximum, or names. The error shows them. */
  readonly offers?: (mapping: Mapping) => number | readonly string[] | undefined
  /** A sentence for the refusal: what the caller or the operator can do. */
  readonly advice?: string
  needed(request: R): boolean
  met(mapping: Mapping, request: R, promptTokens: () => number): boolean
}

/** Whether a mapping takes a parameter; one that lists none takes all of its wire. */
export const takes = ({ parameters }: Mapping, name: string): boolean => !parameters || parameters.has(name)

/** The other end of a WebSocket: gets what sends an event, and returns what takes those of the client. */
export type SimulatedSession = (send: (event: object) => void, query: string) => (event: Readonly<Json>) => void

/** A simulated answer to one request. Throws a SimulatedError for what it cannot make. */
export type Simulation = (request: SimulatedRequest) => SimulatedAnswer

/** A request as the demo provider gets it. */
export interface SimulatedRequest {
  /** Undefined for a body that is not JSON. */
  readonly json: unknown
  readonly body: Buffer
  readonly contentType: string
  readonly method: string
  /** Parameters of the path. */
  readonly params: Readonly<Record<string, string>>
}

/** An object is sent as JSON, `chunks` one by one. */
export type SimulatedAnswer =
  | { readonly json: object }
  | { readonly contentType: string; readonly chunks: Iterable<string | Buffer> }

/** A request that the simulation refuses with 400, as an OpenAI error names it. */
export class SimulatedError extends Error {
  readonly param: string
  readonly code: string | null

  constructor(message: string, param: string, code: string | null = null) {
    super(message)
    this.param = param
    this.code = code
  }
}
