/** The pseudo-call `parallel`: models sometimes wrap several calls in one, which no client could answer. */
import { isObject, listIn } from '../../src/plugin.ts'

export const PARALLEL = 'parallel'

const RECIPIENT = /^functions\.(.+)$/s

export interface WrappedCall {
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
    parsed = JSON.parse(args)
  } catch {
    return undefined
  }
  const calls: WrappedCall[] = []
  for (const use of listIn(isObject(parsed) ? parsed.tool_uses : undefined)) {
    const name = isObject(use) ? RECIPIENT.exec(String(use.recipient_name))?.[1] : undefined
    if (name === undefined || !isObject(use) || !isObject(use.parameters)) return undefined
    calls.push({ name, args: JSON.stringify(use.parameters) })
  }
  return calls.length > 0 ? calls : undefined
}
