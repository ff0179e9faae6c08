/**
 * A client's own Responses body, for a provider of the same wire: only what must change is changed, so that nothing of
 * it is lost (docs/contract.md#responses).
 */
import {
  type ChatRequest,
  errors,
  isObject,
  type Json,
  listIn,
  objectIn,
  type Target,
  textIn,
  type WireRequest,
  wellFormed,
} from '../../src/plugin.ts'
import { dropUnpaid, fits, GATEWAY_ONLY, paysItself } from '../shared/operator-pays.ts'
import { reasoningOf } from './encode.ts'
import { hasText, replayed } from './replay.ts'

/** The wire whose bodies pass on almost unchanged. */
export const NATIVE_WIRE = 'openai.responses'

const ENCRYPTED = 'reasoning.encrypted_content'
/** A manifest's `native_fields` may list it. */
const FILE_ID = 'file_id'

/** Fields of the body that cost nothing but tokens, on the operator's credentials. */
const FIELDS: ReadonlySet<string> = new Set([
  'background',
  'client_metadata',
  'context_management',
  'include',
  'input',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'model',
  'parallel_tool_calls',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'store',
  'stream',
  'stream_options',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
])

/** Fields that only tune an answer or choose a tier. They are dropped when the canonical request lacks them. */
const TUNING = ['prompt_cache_key', 'service_tier', 'temperature', 'top_p'] as const

/** Tools that the client runs, that cost tokens alone, or that have a price. */
const FREE_TOOL =
  /^(?:function|custom|namespace|local_shell|shell|apply_patch|computer.*|tool_search|web_search(?:_.*)?)$/

/** `body` has passed the endpoint's schema. Shares with it what does not change. */
export function native(
  body: Readonly<Json>,
  input: Readonly<ChatRequest>,
  target: Target,
  stream: boolean,
): WireRequest {
  const { mapping } = target
  const sent: Json = Object.assign({}, body)
  for (const name of GATEWAY_ONLY) delete sent[name]
  // The wire has no such field: the gateway cuts the answer.
  delete sent.stop
  if (!paysItself(target)) {
    checkPaid(sent, target)
    checkTools(sent, target)
  }
  sent.model = mapping.externalId
  sent.store = false
  if (stream) sent.stream = true
  else if (sent.stream !== false) delete sent.stream
  for (const name of TUNING) if (input[name] == null) delete sent[name]
  setLimit(sent, input.max_completion_tokens ?? input.max_tokens)
  setReasoning(sent, reasoningOf(input, target))
  if (mapping.supports.has('reasoning')) sent.include = [...new Set([...listIn(sent.include), ENCRYPTED])]
  if (Array.isArray(body.input)) sent.input = itemsOf(body.input, target)
  return { path: '/responses', body: wellFormed(sent) as Json }
}

/** Throws a 400 that names what the operator's credentials do not pay for; a target with the caller's own key may. */
function checkPaid(sent: Json, target: Target): void {
  dropUnpaid(sent, FIELDS, target)
  if (target.provider.nativeFields?.includes(FILE_ID)) return
  for (const [i, item] of listIn(sent.input).entries()) {
    if (!isObject(item)) continue
    for (const field of ['content', 'output']) {
      const at = `input[${i}].${field}`
      // A screenshot is the output itself.
      refuseFile(item[field], at)
      for (const [j, part] of listIn(item[field]).entries()) refuseFile(part, `${at}[${j}]`)
    }
  }
}

function refuseFile(part: unknown, at: string): void {
  if (isObject(part) && textIn(part.file_id) !== undefined) throw errors.ownKeyOnly(`${at}.${FILE_ID}`)
}

/** A shell of the client costs nothing, a container of the provider has no price here. */
const runsElsewhere = ({ environment }: Json): boolean => isObject(environment) && environment.type !== 'local'

/** Puts system prompts before the client's instructions. */
export const withSystem = (body: Readonly<Json>, texts: readonly string[]): Json => ({
  ...body,
  instructions: [...texts, ...(body.instructions == null ? [] : [body.instructions])].join('\n\n'),
})

/** Throws a 400 for a hosted tool without a price, also where an item adds it. */
function checkTools({ tools, input }: Json, { provider: { nativeTools = [] } }: Target): void {
  const check = (list: unknown, at: string) => {
    for (const [i, tool] of listIn(list).entries()) {
      const type = isObject(tool) ? String(tool.type) : ''
      if (isObject(tool)) check(tool.tools, `${at}[${i}].tools`)
      if (nativeTools.some(entry => fits(entry, type))) continue
      if (!FREE_TOOL.test(type)) throw errors.ownKeyOnly(`${at}[${i}].type`)
      if (isObject(tool) && runsElsewhere(tool)) throw errors.ownKeyOnly(`${at}[${i}].environment`)
    }
  }
  check(tools, 'tools')
  for (const [i, item] of listIn(input).entries()) if (isObject(item)) check(item.tools, `input[${i}].tools`)
}

/** The canonical request has a lower limit where the gateway sets one. */
function setLimit(sent: Json, limit: number | null | undefined): void {
  if (limit != null && !(Number(sent.max_output_tokens ?? undefined) <= limit)) sent.max_output_tokens = limit
}

/** How much to think as this model can; what is shown of it, as the client says. */
function setReasoning(sent: Json, canonical: Json | undefined): void {
  const { effort: _, ...shown } = objectIn(sent.reasoning)
  const effort = canonical?.effort
  if (!canonical) delete sent.reasoning
  else if (effort !== undefined) sent.reasoning = Object.assign({ effort }, shown)
  else if (isObject(sent.reasoning)) sent.reasoning = shown
}

/** The items as they came, with the reasoning that is this provider's; the wire refuses reasoning that leads to nothing. */
function itemsOf(given: readonly unknown[], target: Target): unknown[] {
  const items: unknown[] = []
  /** Searches that reasoning brought back, and that the client may repeat. */
  let returned = 0
  for (const item of given) {
    if (!isObject(item)) continue
    if (item.type === 'web_search_call' && returned > 0) {
      returned--
      continue
    }
    if (item.type === 'reasoning' && hasText(item)) items.push(item)
    else if (item.type === 'reasoning') {
      const { details, native } = objectIn(item.carried)
      for (const own of replayed(listIn(details).filter(isObject), listIn(native).filter(isObject), target)) {
        items.push(own.item)
        if (own.item.type === 'web_search_call') returned++
      }
    } else {
      if (!isOfAnswer(item)) {
        dropLast(items)
        returned = 0
      }
      items.push(asSent(item))
    }
  }
  dropLast(items)
  return items
}

/** Without what the official client's helpers add to the items of an answer, and the wire refuses. */
function asSent(item: Json): Json {
  if ('parsed_arguments' in item) {
    const { parsed_arguments: _, ...plain } = item
    return plain
  }
  const parts = listIn(item.content)
  if (!parts.some(part => isObject(part) && 'parsed' in part)) return item
  const plain = parts.map(part => {
    if (!isObject(part)) return part
    const { parsed: _, ...rest } = part
    return rest
  })
  return Object.assign({}, item, { content: plain })
}

/** Calls of any tool are items of an answer. */
const isOfAnswer = ({ type, role }: Json): boolean => role === 'assistant' || String(type).endsWith('_call')

function dropLast(items: unknown[]): void {
  for (let last = items.at(-1); isObject(last) && last.type === 'reasoning'; last = items.at(-1)) items.pop()
}
