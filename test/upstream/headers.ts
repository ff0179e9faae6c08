import type { Outgoing } from '../../src/upstream/auth/strategy.ts'

/** The headers of a request by their names; throws when one stands there twice. */
export function byName({ headers }: Pick<Outgoing, 'headers'>): Record<string, string> {
  const found: Record<string, string> = {}
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    if (name in found) throw new Error(`the header "${name}" stands there twice`)
    found[name] = headers[at + 1]!
  }
  return found
}
