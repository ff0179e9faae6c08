/** Lists that come in parts, put together again. */
import type { Admin } from './admin.ts'

/** How many records one part holds. */
const PART = 500

/** All records of a list. */
export async function every<T extends { readonly id: string }>(
  admin: Admin,
  command: string,
  args: object = {},
): Promise<T[]> {
  const found: T[] = []
  for (let after: string | undefined; ; after = found.at(-1)?.id) {
    const part = await admin.command<T[]>(command, { ...args, after, limit: PART })
    found.push(...part)
    if (part.length < PART) return found
  }
}

/** The same for what has no ids: `ask` answers with a part of what follows the first `offset`. */
export async function everyPart<T>(
  ask: (part: { limit: number; offset: number }) => Promise<readonly T[]>,
): Promise<T[]> {
  const found: T[] = []
  for (;;) {
    const part = await ask({ limit: PART, offset: found.length })
    found.push(...part)
    if (part.length < PART) return found
  }
}
