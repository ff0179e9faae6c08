/** The pseudo-call `parallel`: models sometimes wrap several calls in one, which no client could answer. */
import { isObject, type Json, listIn, MAX_CALLS, objectIn, parseAnswer, parseCalls, textIn } from '../../src/plugin.ts'

/** The name of the pseudo-call. */
export const PARALLEL = 'parallel'

/** Longer arguments belong to an actual tool. */
const MAX_ARGUMENTS_CHARACTERS = 1024 * 1024

const RECIPIENT = /^functions\.(.+)$/s

interface WrappedCall {
  name: string
  /** JSON text of an object. */
  args: string
}

/**
 * The calls in the arguments of `parallel`: `{"tool_uses":[{"recipient_name":"functions.X","parameters":{…}}]}`.
 * Undefined for anything else: it is then an actual tool of that name.
 */
export function wrappedCalls(args: string): WrappedCall[] | undefined {
  if (args.length > MAX_ARGUMENTS_CHARACTERS) return undefined
  let plain: unknown
  let parsed: unknown
  try {
    plain = parseAnswer(args)
    parsed = parseCalls(args, (_, name) => (name === 'tool_uses' ? 'parameters' : undefined))
  } catch {
    return undefined
  }
  const calls: WrappedCall[] = []
  const uses = usesIn(parsed)
  if (uses.length > MAX_CALLS) return undefined
  for (const [i, use] of usesIn(plain).entries()) {
    const name = isObject(use) ? RECIPIENT.exec(textIn(use.recipient_name) ?? '')?.[1] : undefined
    if (name === undefined || !isObject(use) || !isObject(use.parameters)) return undefined
    // Values with long numbers are already text.
    const { parameters } = uses[i] as Json
    calls.push({ name, args: typeof parameters === 'string' ? parameters : JSON.stringify(parameters) })
  }
  return calls.length > 0 ? calls : undefined
}

const usesIn = (value: unknown): readonly unknown[] => listIn(objectIn(value).tool_uses)
