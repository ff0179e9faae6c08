/** The wires that clients speak, as the cases of the matrix use them. */
import { aiSdkChat } from '../../helpers/ai-sdk-chat.ts'
import { chat, type Mode, type Turn } from '../../helpers/chat.ts'
import type { Gateway } from '../../helpers/gateway.ts'
import { geminiChat } from '../../helpers/gemini-chat.ts'
import { responsesChat } from '../../helpers/responses-chat.ts'

type Json = Record<string, unknown>

export interface ClientWire {
  readonly name: string
  ask(gateway: Gateway, mode: Mode, body: Json): Promise<Turn>
  /** What a client of this wire sees, where another one sees `expected`. */
  sees(expected: Json): Json
}

/** No usage of the wire tells what was written to a cache; its cost is told all the same. */
const withoutWrites = (expected: Json): Json => {
  const usage = expected.usage as Json | null | undefined
  return usage?.written ? { ...expected, usage: { ...usage, written: 0 } } : expected
}

/** A failure in a stream has a code of the wire's own enumeration, and no type. */
const ownFailures = (expected: Json): Json => {
  const error = expected.error as Json | null | undefined
  if (!error || expected.status !== 200) return expected
  return { ...expected, error: { type: undefined, code: 'server_error', message: error.message } }
}

export const clients: readonly ClientWire[] = [
  { name: 'chat completions', ask: chat, sees: expected => expected },
  { name: 'responses', ask: responsesChat, sees: ownFailures },
  { name: 'generateContent', ask: geminiChat, sees: withoutWrites },
  { name: 'AI SDK', ask: aiSdkChat, sees: expected => expected },
]
