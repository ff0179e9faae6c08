/** The audit log. */
import { s } from '../../core/schema.ts'
import { maskAll } from '../../secrets/known.ts'
import { mapText } from '../../secrets/map-text.ts'
import { organization } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'

const USUAL = 50

/** `audit`. */
export const auditCommands: CommandTable = {
  /**
   * → `{id, at, actor, action, organization, subject, before, after}`, newest first; `beforeId` requests the next page.
   */
  audit: command(
    s.object({
      organization: s.optional(organization),
      limit: s.optional(s.integer({ minimum: 1, maximum: 1000, description: 'a count from 1 to 1000' })),
      beforeId: s.optional(s.integer({ minimum: 1, description: 'the id of an entry' })),
    }),
    async ({ organization, limit = USUAL, beforeId }, { audit }) =>
      mapText(await audit.list({ organization, limit, before: beforeId }), maskAll),
  ),
}
