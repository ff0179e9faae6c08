/** Stored responses in memory. */
import type { ResponseOwner, ResponseStore } from '../../../core/ports.ts'
import { PRUNED_RESPONSES, responseBytes } from '../../rules/responses.ts'
import type { StoredResponse } from './rows.ts'
import type { Tables } from './tables.ts'

/** Texts in the clear, bounded by organization and session. */
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
  const makeRoom = (isOwn: (row: StoredResponse) => boolean, most: number, dropped: number): boolean => {
    const own = responses.filter(isOwn).sort(oldestFirst)
    let stored = own.reduce((sum, one) => sum + one.bytes, 0)
    for (const { id, bytes } of own.slice(0, dropped)) {
      if (stored <= most) break
      responses.delete(id)
      stored -= bytes
    }
    return stored <= most
  }
  return {
    add: (record, owner, share) =>
      tables.run(() => {
        const bytes = responseBytes(record)
        const { orgId, session } = owner
        const { dropped } = share
        if (bytes > share.bytes || (session !== undefined && bytes > share.session)) return false
        if (session !== undefined && !makeRoom(row => row.session === session, share.session - bytes, dropped))
          return false
        if (!makeRoom(row => row.orgId === orgId, share.bytes - bytes, dropped)) return false
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
