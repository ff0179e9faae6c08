/** Organizations, projects, members, API keys, and sessions of the operator. */
import { formatMoney } from '../../core/money.ts'
import type { KeyRecord, MemberRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { errors } from '../../lib/error.ts'
import {
  amount,
  amountOrNone,
  cacheTtl,
  durationOf,
  isOn,
  keyId,
  lifetime,
  limitArguments,
  limitChange,
  limitInput,
  member,
  name,
  organization,
  pageArguments,
  pageOf,
  project,
  responsesTime,
  shownLimit,
} from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'

const account = s.enum('prepaid', 'open')
const mode = s.enum('credits', 'api-keys', 'hybrid')
const onOff = s.enum('on', 'off')

/** `off` keeps none; undefined leaves it as it is. */
const storedOf = (responses: string | undefined): number | null | undefined =>
  responses === undefined ? undefined : responses === 'off' ? null : durationOf(responses)

interface CacheArguments {
  cache?: 'on' | 'off' | undefined
  cacheTtl?: string | undefined
}

/** A time to live turns the cache on; undefined leaves it unchanged. */
function ttlOf({ cache, cacheTtl }: CacheArguments): number | 'on' | null | undefined {
  if (cache === 'off') return null
  if (cacheTtl !== undefined) return durationOf(cacheTtl)
  return cache
}

const projectArguments = {
  mode: s.optional(mode),
  cache: s.optional(onOff),
  cacheTtl: s.optional(cacheTtl),
  passParameters: s.optional(onOff),
  promptCache: s.optional(s.enum('auto', 'off')),
  responses: s.optional(responsesTime),
}

/** `orgs.*` and `projects.*`. */
export const organizationCommands: CommandTable = {
  /** Prepaid, without credits → the record. */
  'orgs.create': command(
    s.object({ name, account: s.optional(account), retain: s.optional(onOff) }),
    ({ name, account, retain }, { organizations }, actor) =>
      organizations.create({ name, account, retains: retain === 'on' }, actor),
  ),
  'orgs.list': command(s.object(pageArguments), (page, { organizations }) => organizations.list(pageOf(page))),
  /** Omitted fields stay unchanged → the record. */
  'orgs.update': command(
    s.object({ organization, name: s.optional(name), account: s.optional(account), retain: s.optional(onOff) }),
    ({ organization, name, account, retain }, { organizations }, actor) =>
      organizations.update(organization, { name, account, retains: isOn(retain) }, actor),
  ),

  'projects.create': command(
    s.object({ organization, name, ...projectArguments }),
    ({ organization, name, mode, passParameters, promptCache, responses, ...cache }, { projects }, actor) => {
      const cacheTtlMs = ttlOf(cache) ?? null
      const settings = { passesParameters: passParameters === 'on', cachesPrompts: promptCache === 'auto' }
      const responsesMs = storedOf(responses)
      return projects.create({ organization, name, mode, cacheTtlMs, responsesMs, ...settings }, actor)
    },
  ),
  'projects.list': command(
    s.object({ organization: s.optional(organization), ...pageArguments }),
    ({ organization, ...page }, { projects }) => projects.list(organization, pageOf(page)),
  ),
  /** Omitted fields stay unchanged → the record. */
  'projects.update': command(
    s.object({ project, name: s.optional(name), ...projectArguments }),
    ({ project, name, mode, passParameters, promptCache, responses, ...cache }, { projects }, actor) => {
      const times = { cacheTtlMs: ttlOf(cache), responsesMs: storedOf(responses) }
      const passes = { passesParameters: isOn(passParameters), cachesPrompts: isOn(promptCache) }
      return projects.update(project, { name, mode, ...times, ...passes }, actor)
    },
  ),
  /** Requests with its keys get 410 from then on. */
  'projects.archive': command(s.object({ project }), ({ project }, { projects }, actor) =>
    projects.update(project, { archived: true }, actor),
  ),
  'projects.restore': command(s.object({ project }), ({ project }, { projects }, actor) =>
    projects.update(project, { archived: false }, actor),
  ),
}

const email = s.string({
  pattern: '^[^\\s@]{1,64}@[^\\s@]{1,190}$',
  description: 'an address such as "ada@example.com"',
})
const role = s.enum('owner', 'admin', 'developer')
const projects = s.either(s.enum('all'), s.array(s.string({ minLength: 1 })))

/** A member record with limits as `shownLimit` shows them. */
export type ShownMember = ReturnType<typeof shownMember>
const shownMember = ({ limits, ...rest }: MemberRecord) => ({ ...rest, limits: limits.map(shownLimit) })

const accessOf = (given: string | string[] | undefined): readonly string[] | null | undefined =>
  typeof given === 'string' ? null : given

/** `members.*`, except `members.login-link`. */
export const memberCommands: CommandTable = {
  /** Access to all projects unless some are named → the record. */
  'members.add': command(
    s.object({
      organization,
      email,
      role,
      projects: s.optional(projects),
      limit: s.optional(amount),
      ...limitArguments,
    }),
    async ({ organization, email, role, projects, ...limits }, { members }, actor) => {
      const set = limitInput(limits)
      const input = { organization, email, role, projects: accessOf(projects), limit: set && { set } }
      return shownMember(await members.add(input, actor))
    },
  ),
  'members.list': command(
    s.object({ organization: s.optional(organization), ...pageArguments }),
    async ({ organization, ...page }, { members }) => (await members.list(organization, pageOf(page))).map(shownMember),
  ),
  /** Omitted fields stay unchanged → the record. */
  'members.update': command(
    s.object({
      organization,
      member,
      role: s.optional(role),
      projects: s.optional(projects),
      limit: s.optional(amountOrNone),
      ...limitArguments,
    }),
    async ({ organization, member, role, projects, ...limits }, { members }, actor) => {
      const changes = { role, projects: accessOf(projects), limit: limitChange(limits) }
      return shownMember(await members.update(organization, member, changes, actor))
    },
  ),
  /** Keys that the member has created are refused from then on. */
  'members.remove': command(s.object({ organization, member }), async (args, { members }, actor) =>
    shownMember(await members.remove(args.organization, args.member, actor)),
  ),
}

const lifetimeOrNever = s.string({
  pattern: '^(never|[1-9]\\d{0,4}[mhdw])$',
  description: 'a time such as 12h or 30d, or "never"',
})

const expiry = (after: string): number => Date.now() + durationOf(after)

/** A key record with amounts as decimal strings in USD. */
export type ShownKey = ReturnType<typeof shownKey>
const shownKey = <T extends KeyRecord>({ limits, spent, ...rest }: T) => ({
  ...rest,
  limits: limits.map(shownLimit),
  spent: formatMoney(spent),
})

/** `keys.*`. */
export const keyCommands: CommandTable = {
  /** → the record, and `key`: the secret, which is never shownKey again. */
  'keys.create': command(
    s.object({
      project,
      name: s.optional(name),
      expires: s.optional(lifetime),
      kind: s.optional(s.enum('key', 'publishable', 'session')),
      createdBy: s.optional(member),
      limit: s.optional(amount),
      ...limitArguments,
    }),
    async (args, { accounts }, actor) => {
      const input = {
        project: args.project,
        name: args.name ?? `key of ${new Date().toISOString().slice(0, 10)}`,
        kind: args.kind,
        expiresAt: args.expires === undefined ? undefined : expiry(args.expires),
        createdBy: args.createdBy,
        limit: limitInput(args),
      }
      const { key, ...record } = await accounts.createKey(input, actor)
      return { key, ...shownKey(record) }
    },
  ),
  /** → records, each with `spent`, its all-time spend in USD. */
  'keys.list': command(
    s.object({ project: s.optional(project), ...pageArguments }),
    async ({ project, ...page }, { accounts }) => (await accounts.listKeys(project, pageOf(page))).map(shownKey),
  ),
  /** Omitted fields stay unchanged → the record. */
  'keys.update': command(
    s.object({
      id: keyId,
      name: s.optional(name),
      expires: s.optional(lifetimeOrNever),
      limit: s.optional(amountOrNone),
      ...limitArguments,
    }),
    async ({ id, name, expires, ...args }, { accounts }, actor) => {
      const expiresAt = expires === undefined ? undefined : expires === 'never' ? null : expiry(expires)
      const limit = limitChange(args)
      if (name === undefined && expiresAt === undefined && !limit)
        throw errors.badRequest('Name at least one field to change.')
      return shownKey(await accounts.updateKey(id, { name, expiresAt, limit }, actor))
    },
  ),
  'keys.revoke': command(s.object({ id: keyId }), async ({ id }, { accounts }, actor) =>
    shownKey(await accounts.revokeKey(id, actor)),
  ),
  /** Revokes the key and creates another with the same name and project → as `keys.create`. */
  'keys.roll': command(s.object({ id: keyId }), async ({ id }, { accounts }, actor) => {
    const { key, ...record } = await accounts.rollKey(id, actor)
    return { key, ...shownKey(record) }
  }),
}

const id = s.string({ minLength: 1, description: 'the id of a session, as sessions.begin answers it' })

/** `sessions.*`: the operator's own sessions, by which `gatewayctl` calls the public listener. */
export const sessionCommands: CommandTable = {
  /** → `{id, key, expiresAt}`: `key` is the secret, which is never shown again. */
  'sessions.begin': command(s.object({ project }), ({ project }, { operatorSessions }, actor) =>
    operatorSessions.begin(project, actor),
  ),
  'sessions.end': command(s.object({ id }), async ({ id }, { operatorSessions }) => {
    await operatorSessions.end(id)
    return { id }
  }),
}
