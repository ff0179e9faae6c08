/** How client wires store responses and continue stored ones; the filter `responses` does both. */
import { endOfString } from '../json/lossless.ts'

/** For client wires whose requests may continue stored responses. */
export interface StoredForm {
  /** Which stored responses a body names. What is not well-formed names none: `decode` refuses it. */
  references(body: unknown): StoredReferences
  /** Inserts the found turns. A missing one stays in the body, and `decode` rejects it. */
  continued(body: unknown, found: FoundTurns): ContinuedBody
}

/** References of a body to stored responses. */
export interface StoredReferences {
  /** Id of the response that the request continues. */
  readonly previous: string | undefined
  /** Ids of responses that its input takes single items of. */
  readonly others: ReadonlySet<string>
  /** False when the request asks to store nothing. */
  readonly store: boolean
}

/** Items that one request and its answer added to a conversation. */
export interface StoredTurn {
  readonly id: string
  readonly input: readonly unknown[]
  readonly output: readonly unknown[]
}

/** The stored responses that a body refers to, as far as the store has them. */
export interface FoundTurns {
  /** The oldest first. */
  readonly chain: readonly StoredTurn[]
  /** Id of the first response that is missing; the chain is empty then. */
  readonly missing: string | undefined
  readonly others: ReadonlyMap<string, StoredTurn>
}

/** A body that no longer refers to stored responses. */
export interface ContinuedBody {
  /** With the whole conversation in its input. */
  readonly body: unknown
  /** Items that the request itself adds. */
  readonly input: readonly unknown[]
}

/** JSON texts of what one request added to its conversation, and of what its answer did. */
interface TurnTexts {
  /** JSON of a list, as is `output`. */
  readonly input: string
  readonly output: string
}

/** JSON text of a turn; `values`: how many JSON values it holds. */
export const turnText = (values: number, { input, output }: TurnTexts): string =>
  `{"values":${values},"input":${input}${BETWEEN}${output}}`

const BETWEEN = ',"output":'

/** The texts that `turnText` has put together, found without parsing them. */
export function textsOfTurn(turn: string): TurnTexts {
  const from = turn.indexOf('[')
  const to = afterList(turn, from)
  return { input: turn.slice(from, to), output: turn.slice(to + BETWEEN.length, -1) }
}

/** Returns the place behind the list that begins at `from`, in valid JSON text. */
function afterList(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at + 1) - 1
    else if (char === '[' || char === '{') depth++
    else if ((char === ']' || char === '}') && --depth === 0) return at + 1
  }
  throw new SyntaxError('a list does not end')
}

/** JSON texts of a response. */
export interface ResponseTexts {
  /** JSON of the items that it adds to the conversation. */
  readonly output: string
  /** JSON of the other fields. */
  readonly answer: string
}

/** Stored responses of one request: those that it continues, and its own. */
export interface StoredResponses {
  /** Id of the response that the request continues. */
  readonly previousId: string | null
  /** Whether the response is to be stored; settled once `store` has resolved. */
  readonly isStored: boolean
  /** The body with its whole conversation. Called once; throws a GatewayError. */
  read(body: unknown): Promise<unknown>
  /** Whether the response is stored: durably, once it resolves. Never rejects. */
  store(id: string, texts: ResponseTexts): Promise<boolean>
}
