/** Joins lists that the admin listener answers in parts. */
import type { Admin } from './admin.ts'

/** Records per part. */
const PART = 500

/** All records of a list. */
export const every = <T extends { readonly id: string }>(admin: Admin, command: string, args: object = {}) =>
  everyBy<T>(admin, command, args, ({ id }) => id)

/** The same of records whose id has another name. */
export async function everyBy<T>(
  admin: Admin,
  command: string,
  args: object,
  idOf: (record: T) => string,
): Promise<T[]> {
  const found: T[] = []
  for (let after: string | undefined; ; after = idOf(found.at(-1)!)) {
    const part = await admin.command<T[]>(command, { ...args, after, limit: PART })
    found.push(...part)
    if (part.length < PART) return found
  }
}

/** The same for lists without ids: `ask` resolves with the part after the first `offset` entries. */
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
