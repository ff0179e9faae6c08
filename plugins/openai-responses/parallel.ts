/** The pseudo-call `parallel`: models sometimes wrap several calls in one, which no client could answer. */
import { isObject, listIn, parseCalls } from '../../src/plugin.ts'

export const PARALLEL = 'parallel'

const RECIPIENT = /^functions\.(.+)$/s

interface WrappedCall {
  name: string
  /** JSON text of an object. */
  args: string
}

/**
 * The calls in the arguments of `parallel`: `{"tool_uses":[{"recipient_name":"functions.X","parameters":{…}}]}`
 * (wire/openai.md section 4.3). Undefined for anything else: then it is a tool of that name.
 */
export function wrappedCalls(args: string): WrappedCall[] | undefined {
  let parsed: unknown
  try {
    parsed = parseCalls(args, (_, name) => (name === 'tool_uses' ? 'parameters' : undefined))
  } catch {
    return undefined
  }
  const calls: WrappedCall[] = []
  for (const use of listIn(isObject(parsed) ? parsed.tool_uses : undefined)) {
    const name = isObject(use) ? RECIPIENT.exec(String(use.recipient_name))?.[1] : undefined
    const given = isObject(use) ? use.parameters : undefined
    // Where they hold long numbers they are text by now.
    const text = isObject(given) ? JSON.stringify(given) : given
    if (name === undefined || typeof text !== 'string' || !text.startsWith('{')) return undefined
    calls.push({ name, args: text })
  }
  return calls.length > 0 ? calls : undefined
}
