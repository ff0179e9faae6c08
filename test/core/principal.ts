/** Whole principals for tests, which say of one only what they are about. */
import type { Principal } from '../../src/core/ports.ts'

/** A key of a prepaid organization without limits, policies or a past, except for what `changes` say. */
export const principalOf = (changes: Partial<Principal> = {}): Principal => ({
  keyId: 'key-1',
  keyName: 'default',
  kind: 'key',
  projectId: 'project-1',
  orgId: 'org-1',
  orgName: 'acme',
  account: 'prepaid',
  mode: 'credits',
  archived: false,
  expiresAt: undefined,
  cacheTtlMs: undefined,
  passesParameters: false,
  cachesPrompts: false,
  responsesMs: undefined,
  member: undefined,
  access: true,
  budgets: [],
  plan: undefined,
  discounts: [],
  retains: false,
  since: 0,
  ...changes,
})
