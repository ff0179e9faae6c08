/**
 * A chat history for Mistral: system messages first, tool results directly after their calls, the assistant after
 * results, and at the end a user message, a result or the beginning of an answer.
 */

import { createHash } from 'node:crypto'
import {
  endsInAnswer,
  type Json,
  type Message,
  resultWithErrorText,
  type Target,
  toolArguments,
  wellFormed,
} from '../../src/plugin.ts'
import { contentOf, joined, plainText } from '../shared/chat-completions/parts.ts'
import { replayThinking } from '../shared/chat-completions/thinking.ts'
import { type Answered, NO_RESULT, type PairedMessage, pairResults } from '../shared/chat-completions/tool-results.ts'
import { shortName } from '../shared/tool-name.ts'

const ID_CHARACTERS = 9
const OWN = /^[a-zA-Z0-9]{9}$/
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * An id in the wire's form: a valid one unchanged, others as their hash, so that calls and results match in every
 * request. `copy` distinguishes calls of one message with the same id; 0 for the first.
 */
export function wireId(id: string, copy: number): string {
  if (copy === 0 && OWN.test(id)) return id
  const hash = createHash('sha256').update(copy === 0 ? id : `${id}\n${copy}`)
  let rest = hash.digest().readBigUInt64BE()
  let out = ''
  while (out.length < ID_CHARACTERS) {
    out += DIGITS[Number(rest % 62n)]
    rest /= 62n
  }
  return out
}

/** Assistant text inserted between a tool result and the next speaker. */
const BRIDGE = 'OK'
/** Placeholder for a required user message. */
const SILENCE = '.'
/** User text inserted after a final answer. */
const GO_ON = 'Continue.'

/** Throws 400 for content that the wire cannot carry, and for results without a call. */
export function turnsOf(messages: readonly Message[], target: Target): Json[] {
  const turns: Json[] = []
  let opened = false
  const speak = (turn: Json) => {
    if (turn.role === 'user' && turns.at(-1)?.role === 'tool') turns.push({ role: 'assistant', content: BRIDGE })
    if (turn.role === 'assistant' && turns.length === 0) turns.push({ role: 'user', content: SILENCE })
    opened = true
    turns.push(turn)
  }
  for (const { message, at, calls } of pairResults(messages)) {
    switch (message.role) {
      case 'system':
      case 'developer': {
        const text = plainText(message.content, at, message.role)
        if (text === '') break
        // A later one may neither follow an answer nor end the history (R7): it stays in place as a reminder.
        if (!opened) turns.push({ role: 'system', content: text })
        else speak({ role: 'user', content: `<system-reminder>${text}</system-reminder>` })
        break
      }
      case 'user': {
        const content = contentOf(message.content, at)
        if (content.length > 0) speak({ role: 'user', content })
        break
      }
      case 'assistant': {
        const ids = calls.map(({ call, copy }) => wireId(call.id, copy))
        const turn = answerOf({ message, at, calls }, ids, target)
        if (turn) speak(turn)
        for (const [i, call] of calls.entries()) turns.push(resultOf(call, ids[i]!))
      }
    }
  }
  if (!opened) turns.push({ role: 'user', content: SILENCE })
  const last = turns.at(-1)!
  if (last.role === 'assistant' && endsInAnswer(messages)) last.prefix = true
  else if (last.role === 'assistant') turns.push({ role: 'user', content: GO_ON })
  return turns
}

/** Undefined for an answer without content and calls, which the wire rejects. */
function answerOf({ message, at, calls }: PairedMessage, ids: readonly string[], target: Target): Json | undefined {
  const text = plainText(message.content, at, message.role) || wellFormed(message.refusal ?? '')
  const thinking = replayThinking(message, target).map(({ text, signature }) => ({
    type: 'thinking',
    thinking: [{ type: 'text', text }],
    ...(signature === undefined ? {} : { signature }),
    closed: true,
  }))
  if (text === '' && thinking.length === 0 && calls.length === 0) return undefined
  const texts = text === '' ? [] : [{ type: 'text', text }]
  return {
    role: 'assistant',
    content: thinking.length > 0 ? [...thinking, ...texts] : text,
    ...(calls.length > 0 && { tool_calls: calls.map((call, i) => callOf(call, ids[i]!)) }),
  }
}

const callOf = ({ call }: Answered, id: string): Json => ({
  id,
  type: 'function',
  function: {
    name: shortName(call.function.name),
    arguments: toolArguments(call.function.arguments),
  },
})

function resultOf({ call, result, at }: Answered, id: string): Json {
  return {
    role: 'tool',
    name: shortName(call.function.name),
    tool_call_id: id,
    content: result ? joined(contentOf(resultWithErrorText(result), at)) : NO_RESULT,
  }
}
