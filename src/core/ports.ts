/** What outlives a reload. Filters see these ports, never a database. */
export type * from './ports/accounts.ts'
export type * from './ports/keys.ts'
export type * from './ports/ledger.ts'
export type * from './ports/policies.ts'
export type * from './ports/routing.ts'
export type * from './ports/services.ts'
export * from './ports/stores.ts'
export type * from './ports/usage.ts'
