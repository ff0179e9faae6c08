/** Stored responses: which of them a body names, the input that results from them, and their items as lists. */

import type {
  ContinuedBody,
  FoundTurns,
  StoredForm,
  StoredReferences,
  StoredTurn,
} from '../../core/stored-responses.ts'
import { isObject, type Json, listIn, textIn } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'
import { inputItemId, responseOf } from './open-item.ts'

/** How requests of this wire name stored responses, and continue them. */
export const stored: StoredForm = {
  references(body): StoredReferences {
    const { previous_response_id: previous, store, input } = isObject(body) ? body : ({} as Json)
    const others = new Set<string>()
    for (const item of listIn(input)) {
      const response = isReference(item) ? responseOf(item.id) : undefined
      if (response !== undefined) others.add(response)
    }
    return { previous: textIn(previous), others, store: store !== false }
  },

  continued(body, { chain, missing, others }: FoundTurns): ContinuedBody {
    if (!isObject(body)) return { body, input: [] }
    const own = ownInput(body.input, others)
    if (own === undefined) return { body, input: [] }
    const changed = Object.assign({}, body)
    if (own !== body.input && typeof body.input !== 'string') changed.input = own
    if (missing !== undefined) changed.previous_response_id = missing
    else if (chain.length > 0) {
      delete changed.previous_response_id
      changed.input = [...chain.flatMap(({ input, output }) => [...input, ...output]), ...own]
    }
    return { body: changed, input: own }
  },
}

interface Reference {
  readonly id: string
}
/** The type may be left out. */
const isReference = (item: unknown): item is Reference =>
  isObject(item) &&
  textIn(item.id) !== undefined &&
  (item.type === 'item_reference' || (item.type == null && item.role === undefined))

/** The request's own input, with items in place of references to them. Undefined for malformed input. */
function ownInput(input: unknown, others: FoundTurns['others']): readonly unknown[] | undefined {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  if (input == null) return []
  if (!Array.isArray(input)) return undefined
  if (others.size === 0) return input
  const stored = new StoredItems(others)
  return input.map((item: unknown, index) => (isReference(item) ? (stored.take(item.id, index) ?? item) : item))
}

/** Items of stored responses that one request refers to. */
class StoredItems {
  readonly #turns: FoundTurns['others']
  /** Items by id, for each response that was read. */
  readonly #items = new Map<StoredTurn, ReadonlyMap<string, () => Json>>()
  readonly #taken = new Set<string>()

  constructor(turns: FoundTurns['others']) {
    this.#turns = turns
  }

  /** `index`: where the reference stands. Throws a 400 for the second one to an item: a short body would become any size. */
  take(id: string, index: number): Json | undefined {
    const turn = this.#turns.get(responseOf(id) ?? '')
    const item = turn && this.#itemsOf(turn).get(id)
    if (!item) return undefined
    if (this.#taken.has(id)) {
      const param = `input[${index}].id`
      throw errors.invalidField(param, 'another reference names the same item; refer to it once')
    }
    this.#taken.add(id)
    return item()
  }

  #itemsOf(turn: StoredTurn): ReadonlyMap<string, () => Json> {
    const known = this.#items.get(turn)
    if (known) return known
    const items = new Map<string, () => Json>()
    for (const own of inputItems(turn)) items.set(own.id, () => listedItem(own))
    for (const item of turn.output) if (isObject(item)) items.set(String(item.id), () => item)
    this.#items.set(turn, items)
    return items
  }
}

const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  web_search_call: 'ws',
  image_generation_call: 'ig',
}

/** An item of a request's own input. */
interface InputItem {
  /** The id that was made here, or a new one. */
  readonly id: string
  readonly item: Json
}

/** Objects of the input in order, each with an id that is unique in the list. */
export function inputItems({ id: response, input }: Pick<StoredTurn, 'id' | 'input'>): InputItem[] {
  const seen = new Set<string>()
  return input.filter(isObject).map((item, index) => {
    const given = textIn(item.id)
    const isKnown = given !== undefined && responseOf(given) !== undefined && !seen.has(given)
    const id = isKnown ? given : inputItemId(PREFIXES[typeOf(item)] ?? 'item', response, index)
    seen.add(id)
    return { id, item }
  })
}

const typeOf = (item: Json) => String(item.type ?? 'message')

/** The item as lists have it: with its id and its type. */
export function listedItem({ id, item }: InputItem): Json {
  const type = typeOf(item)
  const listed: Json = Object.assign({ id, type }, item, { id, type })
  if (type === 'message') {
    listed.status = 'completed'
    if (typeof item.content === 'string') listed.content = partsOf(item.role, item.content)
  }
  return listed
}

const partsOf = (role: unknown, text: string): Json[] =>
  role === 'assistant' ? [{ type: 'output_text', text, annotations: [], logprobs: [] }] : [{ type: 'input_text', text }]
