/** Stored responses in memory. */
import type { ResponseOwner, ResponseStore } from '../../../core/ports.ts'
import { PRUNED_RESPONSES, responseBytes } from '../../rules/responses.ts'
import type { StoredResponse } from './rows.ts'
import type { Tables } from './tables.ts'

export function responseStore(tables: Tables): ResponseStore {
  const { responses } = tables
  const find = (
    id: string,
    { orgId, projectId, session }: ResponseOwner,
    since: number,
  ): StoredResponse | undefined => {
    const row = responses.get(id)
    if (row?.orgId !== orgId || row.projectId !== projectId || row.createdAt < since) return undefined
    return session === undefined || row.session === session ? row : undefined
  }
  const isStored = ({ projectId, orgId, createdAt }: StoredResponse): boolean => {
    const { responsesMs = null } = tables.projects.get(projectId) ?? {}
    const isAllowed = !tables.policies.get(orgId)?.compliance?.noLogging
    return isAllowed && responsesMs !== null && createdAt >= tables.now() - responsesMs
  }
  const oldestFirst = (a: StoredResponse, b: StoredResponse) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)
  return {
    add: (record, owner, share) =>
      tables.run(() => {
        const bytes = responseBytes(record)
        const others = responses.filter(({ orgId }) => orgId === owner.orgId).sort(oldestFirst)
        let stored = others.reduce((sum, one) => sum + one.bytes, 0)
        if (bytes > share.bytes) return false
        for (const { id, bytes: freed } of others.slice(0, share.dropped)) {
          if (stored + bytes <= share.bytes) break
          responses.delete(id)
          stored -= freed
        }
        if (stored + bytes > share.bytes) return false
        responses.set(record.id, { ...record, ...owner, bytes })
        return true
      }),
    async find(id, owner, since) {
      const row = find(id, owner, since)
      if (!row) return undefined
      const { previousId, createdAt, turn, answer } = row
      return { id, previousId, createdAt, turn, answer }
    },
    async findTurn(id, owner, since) {
      const row = find(id, owner, since)
      return row && { previousId: row.previousId, turn: row.turn }
    },
    remove: (id, owner, since) => tables.run(() => find(id, owner, since) !== undefined && !!responses.delete(id)),
    prune: () =>
      tables.run(() => {
        const dropped = responses.filter(row => !isStored(row)).slice(0, PRUNED_RESPONSES)
        for (const { id } of dropped) responses.delete(id)
        return dropped.length
      }),
  }
}
