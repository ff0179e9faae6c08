/** `gatewayctl orgs`, `projects`, `members` and `keys`. */
import type { Command } from 'commander'
import type { ShownKey, ShownMember } from '../admin/commands/accounts.ts'
import type { LoginCodeRecord, OrganizationRecord, ProjectRecord } from '../core/ports.ts'
import { adder } from './adder.ts'
import { limitTexts, showLimits } from './limits.ts'
import type { Open } from './session.ts'
import { facts, table } from './table.ts'

const ORGANIZATION = '--org <org>: id or name of the organization'
const OF_ORGANIZATION = '--org <org>: only those of this organization'

const showOrganizations = (organizations: readonly OrganizationRecord[]): string =>
  table(
    ['id', 'name', 'account', 'plan', 'retains data', 'created'],
    organizations.map(({ id, name, account, plan, retains, createdAt }) => {
      return [id, name, account, plan ?? 'none', retains ? 'yes' : 'no', createdAt.slice(0, 10)]
    }),
  )

/** Adds `orgs create`, `list` and `update`. */
export function addOrganizations(program: Command, open: Open): void {
  const add = adder(program.command('orgs').description('organizations'), 'orgs', open)
  const one = (organization: OrganizationRecord) => showOrganizations([organization])
  const settings = {
    account: '--account <kind>: whether its balance may fall below zero',
    retain: '--retain <on|off>: whether it pays for the storage of its data',
  }
  add(
    'create',
    'create an organization: prepaid, without credits',
    { name: '--name <name>: its name', ...settings },
    one,
  )
  add('list', 'list organizations', {}, showOrganizations)
  add(
    'update',
    'change an organization; omitted options stay unchanged',
    { organization: '<org>: id or name of the organization', name: '--name <name>: its new name', ...settings },
    one,
  )
}

const HOUR_MS = 3_600_000

const showProjects = (projects: readonly ProjectRecord[]): string =>
  table(
    ['id', 'name', 'organization', 'mode', 'cache', 'responses', 'status', 'passes parameters', 'created'],
    projects.map(({ id, name, organization, mode, cacheTtlMs, responsesMs, status, passesParameters, createdAt }) => {
      const cache = cacheTtlMs === null ? 'off' : `${cacheTtlMs / 1000}s`
      const responses = responsesMs === null ? 'off' : `${responsesMs / HOUR_MS}h`
      const passes = passesParameters ? 'yes' : 'no'
      return [id, name, organization, mode, cache, responses, status, passes, createdAt.slice(0, 10)]
    }),
  )

/** Adds `projects create`, `list`, `update`, `archive` and `restore`. */
export function addProjects(program: Command, open: Open): void {
  const add = adder(program.command('projects').description('projects of organizations'), 'projects', open)
  const one = (project: ProjectRecord) => showProjects([project])
  const project = '<project>: id or name of the project'
  const settings = {
    mode: '--mode <mode>: whose provider keys it uses',
    cache: '--cache <on|off>: whether the response cache replays whole answers',
    cacheTtl: '--cache-ttl <time>: lifetime of cached answers: 60s, 10m, 12h; turns the cache on',
    passParameters: '--pass-parameters <on|off>: whether stop, seed, logprobs and the like are sent to providers',
    promptCache: '--prompt-cache <auto|off>: whether prompts are marked for providers that cache marked prompts only',
    responses: '--responses <time>: how long responses are stored: 12h, 30d; off stores none',
  }
  add('create', 'make a project', { organization: ORGANIZATION, name: '--name <name>: its name', ...settings }, one)
  add('list', 'list projects', { organization: OF_ORGANIZATION }, showProjects)
  add(
    'update',
    'change a project; omitted options stay unchanged',
    { project, name: '--name <name>: its new name', ...settings },
    one,
  )
  add('archive', 'archive a project: its requests get 410', { project }, one)
  add('restore', 'restore an archived project', { project }, one)
}

const showMembers = (members: readonly ShownMember[]): string =>
  table(
    ['id', 'email', 'organization', 'role', 'projects', 'limits USD'],
    members.map(({ id, email, organization, role, projects, limits }) => {
      return [id, email, organization, role, projects === null ? 'all' : projects.join(', '), showLimits(limits)]
    }),
  )

type Login = LoginCodeRecord & { readonly code: string; readonly url: string }

const showLogin = ({ code, url, member, project, expiresAt }: Login): string =>
  `${facts([
    ['code', code],
    ['member', member],
    ['project', project],
    ['expires', expiresAt],
    ['how to connect', url],
  ])}The code is shown only this once, and good for one sign-in. It is pasted into the page that the program opens.\n`

/** Adds `members create`, `list`, `update`, `login-link` and `remove`. */
export function addMembers(program: Command, open: Open): void {
  const add = adder(program.command('members').description('members of organizations'), 'members', open)
  const one = (member: ShownMember) => showMembers([member])
  const named = { member: '<member>: address or id of the member', organization: ORGANIZATION }
  const access = {
    role: '--role <role>: role',
    projects: '--projects <names>: accessible projects, separated by commas, or all',
  }
  add(
    'create',
    'add a member',
    { organization: ORGANIZATION, email: '--email <address>: address of the member', ...access, ...limitTexts() },
    one,
  )
  add('list', 'list members', { organization: OF_ORGANIZATION }, showMembers)
  add(
    'update',
    'change a member; omitted options stay unchanged',
    { ...named, ...access, ...limitTexts('amount in USD, or none to remove the limit') },
    one,
  )
  add(
    'login-link',
    'make a one-time code by which a member signs a program in',
    {
      ...named,
      project: '--project <project>: what it is for; may be left out for a member of one project, or of "default"',
      expires: '--expires <time>: how long the code is good: 90s, 10m, 1h (default: mcp.login_code)',
    },
    showLogin,
  )
  const removed = ({ email }: ShownMember) => `removed ${email}\n`
  add('remove', 'end a membership; keys created by the member are refused from then on', named, removed)
}

type NewKey = ShownKey & { readonly key: string }

const showNew = (key: NewKey): string =>
  `${facts([
    ['key', key.key],
    ['id', key.id],
    ['name', key.name],
    ['project', key.project],
    ['expires', key.expiresAt ?? 'never'],
    ...(key.limits.length > 0 ? [['limits', showLimits(key.limits)] as const] : []),
  ])}The key is shown only this once.\n`

const showKeys = (keys: readonly ShownKey[]): string =>
  keys.length === 0
    ? 'no keys; create one with `gatewayctl keys create --project default`\n'
    : table(
        ['id', 'name', 'project', 'key', 'status', 'spent USD', 'limits USD', 'created', 'expires'],
        keys.map(({ id, name, project, preview, status, spent, limits, createdAt, expiresAt }) => {
          const days = [createdAt.slice(0, 10), expiresAt?.slice(0, 10) ?? 'never']
          return [id, name, project, preview, status, spent, showLimits(limits), ...days]
        }),
      )

/** Adds `keys create`, `list`, `update`, `revoke` and `roll`. */
export function addKeys(program: Command, open: Open): void {
  const add = adder(program.command('keys').description('API keys'), 'keys', open)
  const id = '<id>: id of the key'
  const name = '--name <name>: purpose of the key'
  add(
    'create',
    'create a key and show its secret, once',
    {
      project: '--project <project>: id or name of the project',
      name,
      expires: '--expires <time>: lifetime of the key: 12h, 30d, 52w (default: unlimited; 15m for a session)',
      kind: '--kind <kind>: kind of key',
      createdBy: '--created-by <member>: address of the member who owns the key',
      ...limitTexts(),
    },
    showNew,
  )
  add(
    'list',
    'list keys; secrets are never shown',
    { project: '--project <project>: only those of this project' },
    showKeys,
  )
  add(
    'update',
    'change a key; omitted options stay unchanged',
    {
      id,
      name,
      expires: '--expires <time>: lifetime of the key from now on: 12h, 30d, 52w, or never',
      ...limitTexts('amount in USD, or none to remove the limit'),
    },
    (key: ShownKey) => showKeys([key]),
  )
  add('revoke', 'revoke a key at once', { id }, ({ id, name }: ShownKey) => `revoked ${id} (${name})\n`)
  add('roll', 'revoke a key and create its successor, whose secret is shown once', { id }, showNew)
}
