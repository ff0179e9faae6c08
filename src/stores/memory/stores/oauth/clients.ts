/** Registered clients in memory. */
import type { NewClient, OAuthClient, OAuthClientStore } from '../../../../core/ports.ts'
import {
  clientRecord,
  clientsFull,
  MAX_CLIENTS,
  MAX_CLIENTS_OF_KEY,
  noSuchClient,
  notRegular,
  tooManyOfKey,
} from '../../../rules/oauth.ts'
import type { Names } from '../names.ts'
import { behind, type Tables } from '../tables.ts'
import { type End, orgOf } from './ends.ts'
import type { Live } from './index.ts'

/** Those that were never used go first. */
const idleSince = ({ usedAt, createdAt }: OAuthClient): number => usedAt ?? createdAt - Number.MAX_SAFE_INTEGER

/** `live` finds the keys that clients may act for; `end` ends the grants of a removed client. */
export function clientStore(tables: Tables, names: Names, live: Live, end: End): OAuthClientStore {
  const { clients, grants, now } = tables
  const add = (client: NewClient): OAuthClient => {
    const { keyId } = client
    if (keyId !== null && clients.filter(one => one.keyId === keyId).length >= MAX_CLIENTS_OF_KEY) throw tooManyOfKey()
    const all = clients.all()
    if (all.length >= MAX_CLIENTS) {
      const granted = new Set(grants.filter(one => one.revokedAt === null).map(one => one.clientId))
      const idle = all.filter(one => one.keyId === null && !granted.has(one.id))
      const [oldest] = idle.sort((a, b) => idleSince(a) - idleSince(b))
      if (!oldest) throw clientsFull()
      clients.delete(oldest.id)
    }
    const made: OAuthClient = { ...client, createdAt: now(), usedAt: null }
    clients.set(client.id, made)
    return made
  }
  return {
    register: client =>
      tables.run(() => {
        if (client.keyId !== null && !live(client.keyId)) throw notRegular(client.keyId)
        add(client)
      }),
    find: async id => clients.get(id),
    create: (client, actor) =>
      tables.run(() => {
        const principal = live(names.findKey(client.keyId))
        if (!principal) throw notRegular(client.keyId)
        const became = clientRecord(add(client))
        const note = { actor, action: 'oauth.clients.create', organization: principal.orgId, subject: client.id }
        tables.note({ ...note, was: null, became })
        return became
      }),
    list: async page => behind(clients.all(), page).slice(0, page?.limit).map(clientRecord),
    remove: (id, actor) =>
      tables.run(() => {
        const client = clients.get(id)
        if (!client) throw noSuchClient(id)
        const was = clientRecord(client)
        for (const grant of grants.filter(one => one.clientId === id)) end(grant, actor)
        clients.delete(id)
        const organization = client.keyId === null ? null : (orgOf(tables, client.keyId) ?? null)
        tables.note({ actor, action: 'oauth.clients.remove', organization, subject: id, was, became: null })
        return was
      }),
  }
}
