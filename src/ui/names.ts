/** Names of keys and projects, whose ids alone stand in the request log. */
import type { AdminContext } from '../admin/context.ts'
import { GatewayError } from '../lib/error.ts'

/** Projects of one page whose keys are looked up, and keys of each; others are shown by their ids. */
const MAX_PROJECTS = 10
const MAX_KEYS = 500

interface Owned {
  readonly project: string
  readonly key: string
}

/** Returns the names of those ids that are found, by id. */
export async function namesOf(
  rows: readonly Owned[],
  { accounts }: AdminContext,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  const projects = [...new Set(rows.map(({ project }) => project))].slice(0, MAX_PROJECTS)
  for (const project of projects) {
    try {
      for (const key of await accounts.listKeys(project, { limit: MAX_KEYS })) {
        names.set(key.id, key.name)
        names.set(project, key.project)
      }
    } catch (thrown) {
      // A row may name a project that is gone. Its id is shown then.
      if (!(thrown instanceof GatewayError) || thrown.status >= 500) throw thrown
    }
  }
  return names
}
