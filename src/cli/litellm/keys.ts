/** Keys of LiteLLM as commands for a running gateway. */
import { sha256 } from '../../lib/opaque.ts'
import type { Admin } from '../admin.ts'
import { listAll } from '../commands.ts'
import { Failure } from '../io.ts'
import type { Accounts } from './key-source.ts'
import type { Report } from './report.ts'
import { isSection, listOf, plainName, type Section, sectionOf, textOf } from './sections.ts'

/** Organization and project of keys without a team, which each gateway has. */
const DEFAULT = 'default'
/** Lists that allow every model. */
const ALL_MODELS: readonly unknown[] = ['all-team-models', 'all-proxy-models', '*']
/** Kinds of routes that call no model. */
const NO_CALLS: readonly unknown[] = ['management_routes', 'info_routes']
/** Stands among the models of a user whose keys without a team may call none. */
const NO_MODELS = 'no-default-models'
const HOUR_S = 3600
const DAY_S = 24 * HOUR_S
/** Seconds up to which a span counts as each period. */
const PERIODS = [
  ['hour', HOUR_S],
  ['day', DAY_S],
  ['week', 7 * DAY_S],
  ['month', 31 * DAY_S],
] as const
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: HOUR_S, d: DAY_S, w: 7 * DAY_S, mo: 30 * DAY_S }

/** A key to import. */
export interface Imported {
  readonly organization: string
  readonly project: string
  /** Arguments of a new project. */
  readonly projectArgs: Section
  /** Address of a member; undefined for a key that no member owns. */
  readonly member: string | undefined
  /** Arguments of a new member. */
  readonly memberArgs: Section
  /** Arguments of `keys.import` beside the project and the member. */
  readonly args: Section
  /** The only models that it may call; undefined for all. */
  readonly models: readonly string[] | undefined
}

/**
 * Reads the keys, and notes what becomes of each of their fields below `keys[n]`, `teams[n]` and `users[n]`. `virtual`:
 * what aliases stand for.
 */
export function convertKeys({ keys, teams, users }: Accounts, report: Report, virtual: readonly Section[]): Imported[] {
  const aliases = new Map(virtual.filter(isAlias).map(({ id, use }) => [String(id), targetsOf(use)]))
  const inTeams = new Set(keys.filter(({ team_id }) => textOf(team_id) !== undefined).map(({ user_id }) => user_id))
  const groups = {
    teams: new Map(teams.map((team, index) => [team.team_id, teamOf(team, report.below(`teams[${index}]`), teams)])),
    users: new Map(
      users.map((user, index) => [
        user.user_id,
        userOf(user, report.below(`users[${index}]`), inTeams.has(user.user_id)),
      ]),
    ),
  }
  return keys.flatMap((key, index) => convertKey(key, report.below(`keys[${index}]`), aliases, groups) ?? [])
}

/** A team or a user, with arguments of the project or the member that stands for it. */
interface Place {
  readonly written: Section
  readonly args: Section
}
interface Groups {
  readonly teams: ReadonlyMap<unknown, Place>
  readonly users: ReadonlyMap<unknown, Place>
}

function teamOf(team: Section, report: Report, teams: readonly Section[]): Place {
  report.lost('', 'projects have no such setting')
  report.carried(['team_id', 'team_alias', 'organization_id'], 'the project')
  report.carried('models', 'the models of its keys that name none')
  report.lost('spend', 'the limit of a project counts from the import')
  report.lost(['members', 'members_with_roles', 'admins'], 'owners of keys become members')
  report.carried('blocked', 'an archived project')
  const alias = textOf(team.team_alias)
  // LiteLLM allows teams of one name. As one project they would share a limit.
  const isShared = alias !== undefined && teams.some(one => one !== team && one.team_alias === alias)
  if (isShared) report.changed('team_alias', 'other teams have this name: the id of the team follows it')
  const written = isShared ? { ...team, team_alias: `${alias} ${textOf(team.team_id)}` } : team
  return { written, args: { ...limitOf(team, report), ...ratesOf(team, report) } }
}

/** LiteLLM counts the budget of a user for keys without a team alone. `isInTeam`: whether other keys are theirs, too. */
function userOf(user: Section, report: Report, isInTeam: boolean): Place {
  report.lost('', 'members have no such setting')
  report.carried(['user_id', 'user_email', 'teams'], 'a member, where keys are theirs')
  report.carried('models', 'the models of its keys without a team that name none')
  report.lost('spend', 'the limit of a member counts from the import')
  const limit = limitOf(user, report)
  if (isInTeam && limit.limit !== undefined)
    report.lost('max_budget', 'it is for keys without a team; set a limit of each of these keys')
  return { written: user, args: { ...(isInTeam ? {} : limit), ...ratesOf(user, report) } }
}

/** Rules name models, not virtual ones: a virtual model of another name is meant by its targets. */
const isAlias = ({ id, use }: Section): boolean =>
  targetsOf(use).every(target => target.slice(target.indexOf('/') + 1) !== id)

const targetsOf = (use: unknown): string[] =>
  listOf(use).map(one => (typeof one === 'string' ? one : String(sectionOf(one).model)))

type Aliases = ReadonlyMap<string, readonly string[]>

function convertKey(written: Section, report: Report, aliases: Aliases, groups: Groups) {
  const team = groups.teams.get(written.team_id)
  const user = groups.users.get(written.user_id)
  const key = joined(written, team?.written, user?.written)
  const hash = hashOf(key.token)
  if (hash === undefined) {
    report.lost('', 'it has no token of 64 hexadecimal digits; only keys that it knows by hash are carried')
    return undefined
  }
  const routes = listOf(key.allowed_routes)
  if (routes.length > 0 && routes.every(one => NO_CALLS.includes(one))) {
    report.lost('', 'it may call no model; operators have the admin token')
    return undefined
  }
  report.lost('', 'there is no such field of a key')
  report.carried('token', 'the same key goes on working')
  report.carried(['key_name', 'key_alias'], 'the name of the key')
  report.carried(['team_id', 'team_alias'], 'the project')
  if (!team) report.changed('team_id', 'the project; limits and models of the team are not in this export')
  report.carried(['organization_id', 'org_id'], 'the organization')
  report.carried('spend', 'counts toward its limits')
  report.carried('blocked', 'a blocked key is revoked')
  report.carried('expires')
  report.lost(['metadata', 'tags'], 'requests have tags, keys have none; see docs/end-users-and-tags.md')
  report.lost(['aliases', 'config', 'permissions', 'router_settings'], 'write rules for the key; see docs/rules.md')
  if (isSection(written.litellm_budget_table))
    report.carried(['budget_id', 'litellm_budget_table'], 'its limits are those of the key')
  else report.lost('budget_id', 'import from the address, whose answer has its limits, or set limits of the key')
  const unlike = ['model_max_budget', 'soft_budget'].flatMap(name => [name, `litellm_budget_table.${name}`])
  report.lost([...unlike, 'model_spend', 'budget_limits'], 'see alerts and limits in docs/money.md')
  const ofLitellm = ['created_at', 'created_by', 'updated_at', 'updated_by', 'total_spend', 'rotation_count']
  report.lost([...ofLitellm, 'last_active', 'budget_reset_at'], 'the gateway counts from the import')
  const alias = textOf(key.key_alias)
  const preview = textOf(key.key_name)
  const isShort = preview !== undefined && /^sk-\.{2,3}.{1,6}$/.test(preview)
  const name = (alias ?? (isShort ? preview : `key ${hash.slice(0, 8)}`)).slice(0, 200)
  const member = memberOf(key)
  if (member === undefined) report.lost(['user_id', 'user_email'], 'the operator owns it')
  else report.carried(['user_id', 'user_email'], 'a member')
  if (member && !user) report.changed('user_id', 'a member; limits and models of the user are not in this export')
  const args = {
    hash,
    name,
    ...(isShort && { preview }),
    spent: amountOf(key.spend) ?? '0',
    ...(key.blocked === true && { revoked: true }),
    ...expiryOf(key, report),
    ...limitOf(key, report),
    ...ratesOf(key, report),
  }
  return {
    organization: textOf(key.organization_alias) ?? textOf(key.organization_id) ?? textOf(key.org_id) ?? DEFAULT,
    project: (textOf(key.team_alias) ?? textOf(key.team_id) ?? DEFAULT).slice(0, 200),
    projectArgs: { ...team?.args, archived: team?.written.blocked === true },
    member,
    memberArgs: user?.args ?? {},
    args,
    models: modelsOf(key, report)?.flatMap(name => [name, ...(aliases.get(name) ?? [])]),
  }
}

/** A key with what its team and its owner say of it. */
function joined(key: Section, team: Section = {}, user: Section = {}): Section {
  const own = listOf(key.models)
  // LiteLLM holds a key to the models of its team, else to those of its owner, too.
  const others = listOf(textOf(key.team_id) === undefined ? user.models : team.models)
  const isOwn = own.length > 0 && !own.some(one => ALL_MODELS.includes(one)) && !others.includes(NO_MODELS)
  const limits = ['max_budget', 'budget_duration', ...Object.keys(RATES)]
  return {
    ...key,
    ...Object.fromEntries(limits.map(name => [name, key[name] ?? sectionOf(key.litellm_budget_table)[name]])),
    team_alias: team.team_alias ?? key.team_alias,
    organization_id: key.organization_id ?? key.org_id ?? team.organization_id,
    user_email: key.user_email ?? user.user_email,
    models: isOwn || others.length === 0 ? own : others,
  }
}

/** LiteLLM keeps the SHA-256 of a key. */
function hashOf(token: unknown): string | undefined {
  const text = textOf(token)
  if (text?.startsWith('sk-')) return sha256(text)
  return text !== undefined && /^[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : undefined
}

function memberOf({ user_id, user_email, user }: Section): string | undefined {
  const given = textOf(user_email) ?? textOf(sectionOf(user).user_email) ?? textOf(user_id)
  if (given === undefined || given === 'default_user_id') return undefined
  const isAddress = /^[^\s@]{1,64}@[^\s@]{1,190}$/.test(given)
  return isAddress ? given : `${given.replace(/[\s@]+/g, '-').slice(0, 64)}@users.invalid`
}

/** A decimal of at most nine decimals; undefined for what is no amount. */
function amountOf(value: unknown): string | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  if (typeof number !== 'number' || !(number >= 0) || number >= 1e9) return undefined
  return number.toFixed(9)
}

function expiryOf({ expires }: Section, report: Report): Section {
  const text = textOf(expires)
  if (text === undefined) return {}
  // PostgreSQL writes a zone as +00, and a time without a zone is UTC.
  const zoned = /[zZ]$|[+-]\d\d(?::?\d\d)?$/.test(text.slice(10)) ? text : `${text}Z`
  const time = Date.parse(zoned.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'))
  if (Number.isNaN(time)) throw new Failure(`${report.at}.expires is no time; nothing was imported`)
  report.carried('expires')
  return { expiresAt: time }
}

function limitOf({ max_budget, budget_duration }: Section, report: Report): Section {
  const limit = amountOf(max_budget)
  if (limit === undefined) {
    report.lost('max_budget', 'it is no amount')
    report.lost('budget_duration', 'it means nothing without max_budget')
    return {}
  }
  report.carried('max_budget', 'a spending limit')
  const [, count, unit = ''] = /^(\d+)(mo|[smhdw])$/.exec(textOf(budget_duration) ?? '') ?? []
  if (count === undefined) {
    report.lost('budget_duration', 'the limit holds for all time')
    return { limit }
  }
  const seconds = Number(count) * UNITS[unit]!
  const period = PERIODS.find(([, most]) => seconds <= most)?.[0]
  if (!period) {
    report.changed('budget_duration', 'longer than a month: the limit holds for all time')
    return { limit }
  }
  report.changed('budget_duration', `a calendar ${period}`)
  return { limit, limitPeriod: period }
}

const RATES = { rpm_limit: 'rpm', tpm_limit: 'tpm', tpd_limit: 'tpd', max_parallel_requests: 'concurrency' } as const

function ratesOf(key: Section, report: Report): Section {
  const rates: Record<string, number> = {}
  for (const [name, kind] of Object.entries(RATES)) {
    const value = Number(key[name])
    if (key[name] === null || key[name] === undefined) continue
    if (Number.isSafeInteger(value) && value > 0 && value <= 1_000_000_000) {
      rates[kind] = value
      report.carried(name, `the limit ${kind} of the key`)
    } else report.lost(name, 'it is no number above zero that a limit may have; revoke the key to close it')
  }
  return rates
}

function modelsOf({ models }: Section, report: Report): readonly string[] | undefined {
  const named = listOf(models)
    .filter((one): one is string => textOf(one) !== undefined)
    .map(plainName)
  if (named.length === 0 || named.some(one => ALL_MODELS.includes(one))) {
    report.carried('models', 'all models, or those of its team')
    return undefined
  }
  report.carried('models', 'a rule allow_models')
  return named
}

/** Ways to count what was done. */
export interface Outcome {
  readonly made: number
  /** Keys that were there already, which stay as they are. */
  readonly found: number
  /** Names in their rules of no model, such as groups of models. */
  readonly unknown: readonly string[]
}

interface Listed {
  readonly organization: string
  readonly name: string
  readonly id: string
}
interface Member {
  readonly organization: string
  readonly email: string
  readonly projects: readonly string[] | null
}

/** Makes what is missing: organizations, projects, members and keys. A second run makes nothing. */
export async function importKeys(keys: readonly Imported[], admin: Admin): Promise<Outcome> {
  const [named, placed] = [await listAll<Listed>(admin, 'orgs.list'), await listAll<Listed>(admin, 'projects.list')]
  const organizations = new Set(named.map(({ name }) => name))
  const projects = new Map(placed.map(({ organization, name, id }) => [placeOf(organization, name), id]))
  const listed = await listAll<Member>(admin, 'members.list')
  const members = new Map(listed.map(one => [placeOf(one.organization, one.email.toLowerCase()), one]))
  for (const key of keys) {
    const { organization, project, projectArgs } = key
    if (!organizations.has(organization)) {
      await admin.command('orgs.create', { name: organization, account: 'open' })
      organizations.add(organization)
    }
    const place = placeOf(organization, project)
    if (!projects.has(place)) {
      const { archived, ...limits } = projectArgs
      const { id } = await admin.command<Listed>('projects.create', { organization, name: project, ...limits })
      if (archived) await admin.command('projects.archive', { project: id })
      projects.set(place, id)
    }
    await joinMember(admin, members, key)
  }
  const outcome = { made: 0, found: 0 }
  const strange = new Set<string>()
  for (const { organization, project, member, args, models } of keys) {
    const createdBy = member && members.get(placeOf(organization, member.toLowerCase()))!.email
    const key = { project: projects.get(placeOf(organization, project)), createdBy, models, ...args }
    const { found, unknown = [] } = await admin.command<{ found?: boolean; unknown?: string[] }>('keys.import', key)
    for (const name of unknown) if (name !== NO_MODELS) strange.add(name)
    if (found) outcome.found++
    else outcome.made++
  }
  return { ...outcome, unknown: [...strange].sort() }
}

/** Names are unique within an organization. */
const placeOf = (organization: string, name: string): string => `${organization}\n${name}`

/** `members`: by their place, whose addresses are in small letters. */
async function joinMember(admin: Admin, members: Map<string, Member>, key: Imported): Promise<void> {
  const { organization, project, member, memberArgs } = key
  if (member === undefined) return
  const place = placeOf(organization, member.toLowerCase())
  const known = members.get(place)
  if (known?.projects === null || known?.projects.includes(project)) return
  const email = known?.email ?? member
  const projects = [...(known?.projects ?? []), project]
  if (known) await admin.command('members.update', { organization, member: email, projects })
  else await admin.command('members.add', { organization, email, role: 'developer', projects, ...memberArgs })
  members.set(place, { organization, email, projects })
}
