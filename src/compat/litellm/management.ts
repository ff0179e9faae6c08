/** Paths by which LiteLLM's keys, teams and users are managed: each answer says which command does it here. */
import { json } from '../../codecs/json.ts'
import type { Endpoint, Method } from '../../core/endpoint.ts'
import { errors } from '../../lib/error.ts'

/** Maps the first and the last part of a path to a command of `gatewayctl`; `''` stands for any other last part. */
const COMMANDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  key: {
    ...{ generate: 'keys create', update: 'keys update', bulk_update: 'keys update', regenerate: 'keys roll' },
    ...{ delete: 'keys revoke', block: 'keys revoke', '': 'keys list' },
  },
  user: { new: 'members create', update: 'members update', delete: 'members remove', '': 'members list' },
  team: {
    ...{ new: 'projects create', update: 'projects update', delete: 'projects archive', block: 'projects archive' },
    ...{ unblock: 'projects restore', member_add: 'members create', member_update: 'members update' },
    ...{ member_delete: 'members remove', '': 'projects list' },
  },
  organization: {
    ...{ new: 'orgs create', update: 'orgs update', member_add: 'members create', member_delete: 'members remove' },
    '': 'orgs list',
  },
  budget: { '': 'keys update' },
  spend: { '': 'requests list' },
  model: { '': 'models list' },
}
const METHODS: readonly Method[] = ['GET', 'POST', 'PATCH', 'DELETE']

const rowsOf = (start: string): readonly Endpoint[] =>
  METHODS.map(method => ({
    name: 'key',
    method,
    path: `/${start}/{+action}`,
    chain: 'local',
    codec: json,
    bodyLimit: 0,
    // Clients send LiteLLM's admin key. Without `open` they would get a 401, and never read what to do.
    open: true,
    check: ({ http }) => {
      throw remedy(start, http.params.action?.split('/').at(-1) ?? '')
    },
    serve: async () => Promise.reject(remedy(start, '')),
  }))

/** Returns the 404 that names a command. */
function remedy(start: string, action: string): Error {
  const commands = COMMANDS[start]!
  const command = (Object.hasOwn(commands, action) && commands[action]) || commands['']!
  return errors.notFound(
    `Nothing is managed at /${start}/. Use "gatewayctl ${command}" or the admin listener; see docs/litellm-compat.md.`,
  )
}

/** Open to all; every one of them answers 404. */
export const management: readonly Endpoint[] = Object.keys(COMMANDS).flatMap(rowsOf)
