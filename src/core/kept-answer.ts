/** What client wires keep of answers, so that later requests go on from them; the filter `responses` keeps it. */

/** For client wires whose requests may go on from kept answers. */
export interface KeptForm {
  /** What a body says of kept answers. What is not well-formed says nothing: `decode` refuses it. */
  references(body: unknown): KeptReferences
  /** What is not found stays as it is: `decode` refuses it. */
  continued(body: unknown, found: FoundTurns): ContinuedBody
}

export interface KeptReferences {
  /** Id of the answer that the request goes on from. */
  readonly previous: string | undefined
  /** Ids of answers that its input takes single items of. */
  readonly others: ReadonlySet<string>
  /** False when the request asks to keep nothing. */
  readonly store: boolean
}

/** What one request added to its conversation, and what its answer did. */
export interface KeptTurn {
  readonly id: string
  readonly input: readonly unknown[]
  readonly output: readonly unknown[]
}

export interface FoundTurns {
  /** The oldest first. */
  readonly chain: readonly KeptTurn[]
  /** Id of the first of them that is not there; the chain is empty then. */
  readonly missing: string | undefined
  readonly others: ReadonlyMap<string, KeptTurn>
}

export interface ContinuedBody {
  /** With the whole conversation in its input. */
  readonly body: unknown
  /** What the request itself adds to it. */
  readonly input: readonly unknown[]
}

/** JSON texts of an answer. */
export interface AnswerTexts {
  /** Of what it adds to the conversation. */
  readonly output: string
  /** Of the rest. */
  readonly answer: string
}

/** Keeps the answer of one request. */
export interface AnswerKeeper {
  /** The answer that the request goes on from. */
  readonly previousId: string | null
  /** The answer is to be kept; settled once `keep` has resolved. */
  readonly keeps: boolean
  /** The body with its whole conversation. Called once; throws a GatewayError. */
  read(body: unknown): Promise<unknown>
  /** Whether the answer is kept: durably, once it resolves. Never rejects. */
  keep(id: string, texts: AnswerTexts): Promise<boolean>
}
