/** A chat history as input items: messages, reasoning and calls as separate items in the original order. */
import {
  endsInAnswer,
  type Json,
  type Message,
  PendingToolCalls,
  resultWithErrorText,
  type Target,
  type ToolCall,
  textKey,
  toolArguments,
} from '../../src/plugin.ts'
import { hashedCallId } from '../shared/call-count.ts'
import { shortName } from '../shared/tool-name.ts'
import { inputOf, outputOf } from './parts.ts'
import { namespaceOf, withReplayed } from './replay.ts'
import { MAX_NAME_CHARACTERS } from './tools.ts'

/** A tool call, and its result once a tool message provides it. */
interface CallItem {
  readonly id: string
  readonly type: ToolCall['type']
  output: Json | undefined
}

interface ResponsesTurn {
  readonly items: Json[]
  readonly calls: readonly CallItem[]
}

/** `breakpoints` keeps `prompt_cache_breakpoint` on parts. Throws 400 for a tool result without a call. */
export function itemsOf(messages: readonly Message[], target: Target, breakpoints: boolean): Json[] {
  const turns: ResponsesTurn[] = []
  const calls = new Calls()
  messages.forEach((message, i) => {
    const at = `messages[${i}]`
    switch (message.role) {
      case 'system':
      case 'developer':
      case 'user': {
        const content = inputOf(message.content, at, breakpoints)
        if (content !== undefined) turns.push({ items: [{ type: 'message', role: message.role, content }], calls: [] })
        break
      }
      case 'assistant':
        turns.push(turnOfMessage(message, at, target, calls))
        break
      case 'tool':
      case 'function': {
        const call = calls.answeredBy(message, at)
        const output = inputOf(resultWithErrorText(message), at, breakpoints) ?? ''
        if (call.output) call.output.output = output
        else {
          call.output = outputItem(call, output)
          turns.push({ items: [call.output], calls: [] })
        }
        break
      }
    }
  })
  const items = turns.flatMap(({ items, calls }) => [...items, ...calls.filter(call => !call.output).map(noResult)])
  if (items.at(-1)?.role === 'assistant' && !endsInAnswer(messages)) items.push(CONTINUE)
  return items
}

/** Inserted after a final answer: compatible servers continue an answer that comes last. */
const CONTINUE: Json = Object.freeze({ type: 'message', role: 'user', content: 'Continue.' })

const outputItem = ({ id, type }: CallItem, output: string | Json[]): Json => ({
  type: type === 'custom' ? 'custom_tool_call_output' : 'function_call_output',
  call_id: id,
  output,
})

/** The wire rejects a call without a result. */
const noResult = (call: CallItem): Json => outputItem(call, 'No result')

/** The messages and calls of one answer in order, with its other items (see `replay.ts`). */
function turnOfMessage(message: Message, at: string, target: Target, calls: Calls): ResponsesTurn {
  const made: CallItem[] = []
  const items: Json[] = []
  const toolCalls = message.tool_calls ?? []
  const pending = messagesOf(message, at)
  let said = 0
  const sayUpTo = (preceding: number) => {
    for (; said < pending.length && pending[said]!.preceding <= preceding; said++) items.push(pending[said]!.item)
  }
  for (const [j, given] of toolCalls.entries()) {
    sayUpTo(j)
    const call = calls.add(given, made)
    made.push(call)
    const namespace = namespaceOf(given.extra_content?.vendor?.thought_signature, target)
    items.push({ ...callItem(given, call.id), ...(namespace !== undefined && { namespace }) })
  }
  sayUpTo(Number.POSITIVE_INFINITY)
  return { items: withReplayed(items, message, target), calls: made }
}

function callItem(call: ToolCall, id: string): Json {
  if (call.type === 'custom') {
    const { name, input } = call.custom
    return { type: 'custom_tool_call', call_id: id, name: shortName(name, MAX_NAME_CHARACTERS), input }
  }
  const { name, arguments: args } = call.function
  return {
    type: 'function_call',
    call_id: id,
    name: shortName(name, MAX_NAME_CHARACTERS),
    arguments: toolArguments(args),
  }
}

interface PlacedMessage {
  readonly item: Json
  /** Tool calls of the preceding turn. */
  readonly preceding: number
}

/** Each phased item is a separate message; otherwise all content is one, by default before the calls. */
function messagesOf(message: Message, at: string): PlacedMessage[] {
  const messages: PlacedMessage[] = []
  const say = (content: Json[], phase: string | null | undefined, preceding: number) => {
    if (content.length === 0) return
    const item = { type: 'message', role: 'assistant', status: 'completed', content, ...(phase && { phase }) }
    messages.push({ item, preceding })
  }
  if (message.message_items?.length) {
    for (const { text, phase, preceding_tool_calls: preceding } of message.message_items) {
      say(outputOf(text, undefined, at), phase, preceding ?? 0)
    }
    say(outputOf(undefined, message.refusal, at), undefined, Number.POSITIVE_INFINITY)
  } else {
    const isLast = message.content_before_tool_calls === false
    say(outputOf(message.content, message.refusal, at), message.phase, isLast ? Number.POSITIVE_INFINITY : 0)
  }
  return messages
}

const MAX_CALL_ID_CHARACTERS = 64

/** The calls of a conversation by the client's ids, which other providers make longer, or reuse. */
class Calls {
  readonly #open = new PendingToolCalls<CallItem>(({ output }) => output !== undefined)
  readonly #counts = new Map<string, number>()

  /** The wire's id depends only on earlier items, so that a growing conversation keeps its bytes. */
  add({ id, type }: ToolCall, turn: object): CallItem {
    const key = textKey(id)
    const count = this.#counts.get(key) ?? 0
    this.#counts.set(key, count + 1)
    const fits = id !== '' && id.length <= MAX_CALL_ID_CHARACTERS && count === 0
    const call: CallItem = { id: fits ? id : hashedCallId(`${count}:${id}`), type, output: undefined }
    this.#open.add(id, call, turn)
    return call
  }

  answeredBy(message: Message, at: string): CallItem {
    return this.#open.answeredBy(message, at)
  }
}
