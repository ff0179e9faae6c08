/** Ends and removes what is over of clients, grants, codes and tokens in memory. */
import { CLIENT_MS, KEPT_MS, presented, SWEPT } from '../../../rules/oauth.ts'
import type { Table } from '../table.ts'
import type { Tables } from '../tables.ts'
import type { End } from './ends.ts'

/** Within `run`. Returns how many rows it removed. */
export function sweepOAuth(tables: Tables, end: End): number {
  const { clients, grants, codes, tokens, logins, keys } = tables
  const now = tables.now()
  const before = now - KEPT_MS
  const isInForce = (id: string) =>
    [...tokens.rows(), ...codes.rows()].some(one => one.grantId === id && presented(one, now) === 'accepted')
  for (const grant of grants.filter(one => one.revokedAt === null && !isInForce(one.id)).slice(0, SWEPT)) end(grant)
  let removed = 0
  const remove = <R>(table: Table<R>, id: (row: R) => string, isOver: (row: R) => boolean) => {
    for (const row of table.filter(isOver).slice(0, SWEPT)) {
      table.delete(id(row))
      removed++
    }
  }
  const gone = new Set(grants.filter(one => one.revokedAt !== null && one.revokedAt < before).map(({ id }) => id))
  const hashOf = ({ hash }: { hash: string }) => hash
  const idOf = ({ id }: { id: string }) => id
  remove(logins, hashOf, one => one.expiresAt < before)
  remove(codes, hashOf, one => one.expiresAt < before || gone.has(one.grantId))
  remove(tokens, hashOf, one => (one.usedAt ?? one.expiresAt) < before || gone.has(one.grantId))
  remove(grants, idOf, one => gone.has(one.id))
  remove(clients, idOf, ({ id, keyId, usedAt, createdAt }) => {
    const key = keyId === null ? undefined : keys.get(keyId)
    if (key) return key.revokedAt !== null || (key.expiresAt !== null && key.expiresAt <= now)
    const isGranted = grants.all().some(one => one.clientId === id && one.revokedAt === null)
    return (usedAt ?? createdAt) < now - CLIENT_MS && !isGranted
  })
  return removed
}
