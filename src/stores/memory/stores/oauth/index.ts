/** OAuth clients, grants, codes and tokens in memory. */
import type { OAuthStores, Principal } from '../../../../core/ports.ts'
import type { Names } from '../names.ts'
import type { Tables } from '../tables.ts'
import { clientStore } from './clients.ts'
import { endIn } from './ends.ts'
import { grantStore } from './grants.ts'

/** The principal of a regular key that may be used now. */
export type Live = (keyId: string) => Principal | undefined

/** Both stores of OAuth, over the same tables. */
export function oauthStores(tables: Tables, names: Names, live: Live): OAuthStores {
  const end = endIn(tables)
  return { clients: clientStore(tables, names, live, end), grants: grantStore(tables, names, live, end) }
}
