/** Organizations and their projects. */
import type { OrganizationRecord, ProjectRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { HOUR_MS } from '../../lib/period.ts'
import {
  cacheTtl,
  durationOf,
  isOn,
  limitArguments,
  limitChange,
  limitChanges,
  name,
  ofOrganization,
  organization,
  pageArguments,
  pageOf,
  project,
  rateArguments,
  rateChange,
  responsesTime,
  showLimits,
  shownLimit,
  showRates,
} from '../arguments.ts'
import { type CommandTable, command, day, option, rows, shell } from '../command.ts'

const onOff = s.enum('on', 'off')
const yes = (value: boolean): string => (value ? 'yes' : 'no')

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

const newName = option('--name <name>: its new name', name)
const organizationSettings = {
  account: option('--account <kind>: whether its balance may fall below zero', s.enum('prepaid', 'open')),
  retain: option('--retain <on|off>: whether it pays for the storage of its data', onOff),
  ...rateArguments,
}

const showOrganizations = rows<OrganizationRecord>(
  'id, name, account, plan, rates, retains data, created',
  ({ id, name, account, plan, rateLimits, retains, createdAt }) => [
    id,
    name,
    account,
    plan ?? 'none',
    showRates(rateLimits),
    yes(retains),
    day(createdAt),
  ],
)

/** `orgs.*`. */
export const organizationCommands: CommandTable = {
  /** → the record. */
  'orgs.create': command(
    s.object({ name, ...organizationSettings }),
    ({ name, account, retain, ...args }, { organizations }, actor) =>
      organizations.create({ name, account, retains: retain === 'on', rates: rateChange(args) }, actor),
    'create an organization: prepaid, without credits',
    showOrganizations,
  ),
  'orgs.list': command(
    s.object(pageArguments),
    (page, { organizations }) => organizations.list(pageOf(page)),
    'list organizations',
    showOrganizations,
  ),
  /** → the record. */
  'orgs.update': command(
    s.object({
      organization: shell('<org>: id or name of the organization', organization),
      name: newName,
      ...organizationSettings,
    }),
    ({ organization, name, account, retain, ...args }, { organizations }, actor) =>
      organizations.update(organization, { name, account, retains: isOn(retain), rates: rateChange(args) }, actor),
    'change an organization; omitted options stay unchanged',
    showOrganizations,
  ),
}

const named = { project: shell('<project>: id or name of the project', project) }
const projectSettings = {
  mode: option('--mode <mode>: whose provider keys it uses', s.enum('credits', 'api-keys', 'hybrid')),
  cache: option('--cache <on|off>: whether the response cache replays whole answers', onOff),
  cacheTtl: option('--cache-ttl <time>: lifetime of cached answers: 60s, 10m, 12h; turns the cache on', cacheTtl),
  passParameters: option(
    '--pass-parameters <on|off>: whether stop, seed, logprobs and the like are sent to providers',
    onOff,
  ),
  promptCache: option(
    '--prompt-cache <auto|off>: whether prompts are marked for providers that cache marked prompts only',
    s.enum('auto', 'off'),
  ),
  responses: option('--responses <time>: how long responses are stored: 12h, 30d; off stores none', responsesTime),
  content: option(
    '--content <time>: how long requests and answers are kept for requests show: 12h, 7d; off keeps none',
    responsesTime,
  ),
  ...rateArguments,
}

const hoursOf = (ms: number | null): string => (ms === null ? 'off' : `${ms / HOUR_MS}h`)
const shownProject = ({ limits, ...rest }: ProjectRecord) => ({ ...rest, limits: limits.map(shownLimit) })
const showProjects = rows<ReturnType<typeof shownProject>>(
  'id, name, organization, mode, cache, responses, content, limits USD, rates, status, passes parameters, created',
  ({ id, name, organization, mode, cacheTtlMs, responsesMs, contentMs, limits, ...rest }) => {
    const cache = cacheTtlMs === null ? 'off' : `${cacheTtlMs / 1000}s`
    const kept = [cache, hoursOf(responsesMs), hoursOf(contentMs)]
    const { status, passesParameters, createdAt, rateLimits } = rest
    const own = [showLimits(limits), showRates(rateLimits)]
    return [id, name, organization, mode, ...kept, ...own, status, yes(passesParameters), day(createdAt)]
  },
)

/** `projects.*`. */
export const projectCommands: CommandTable = {
  'projects.create': command(
    s.object({ organization, name, ...limitArguments, ...projectSettings }),
    async ({ organization, name, mode, passParameters, promptCache, responses, content, ...args }, context, actor) => {
      const cacheTtlMs = ttlOf(args) ?? null
      const settings = { passesParameters: passParameters === 'on', cachesPrompts: promptCache === 'auto' }
      const times = { cacheTtlMs, responsesMs: storedOf(responses), contentMs: storedOf(content) }
      const limits = { limit: limitChange(args), rates: rateChange(args) }
      const input = { organization, name, mode, ...limits, ...times, ...settings }
      return shownProject(await context.projects.create(input, actor))
    },
    'make a project',
    showProjects,
  ),
  'projects.list': command(
    s.object({ organization: ofOrganization, ...pageArguments }),
    async ({ organization, ...page }, { projects }) =>
      (await projects.list(organization, pageOf(page))).map(shownProject),
    'list projects',
    showProjects,
  ),
  /** → the record. */
  'projects.update': command(
    s.object({ ...named, name: newName, ...limitChanges, ...projectSettings }),
    async ({ project, name, mode, passParameters, promptCache, responses, content, ...args }, context, actor) => {
      const times = { cacheTtlMs: ttlOf(args), responsesMs: storedOf(responses), contentMs: storedOf(content) }
      const passes = { passesParameters: isOn(passParameters), cachesPrompts: isOn(promptCache) }
      const limits = { limit: limitChange(args), rates: rateChange(args) }
      return shownProject(await context.projects.update(project, { name, mode, ...limits, ...times, ...passes }, actor))
    },
    'change a project; omitted options stay unchanged',
    showProjects,
  ),
  'projects.archive': command(
    s.object(named),
    async ({ project }, { projects }, actor) => shownProject(await projects.update(project, { archived: true }, actor)),
    'archive a project: its requests get 410',
    showProjects,
  ),
  'projects.restore': command(
    s.object(named),
    async ({ project }, { projects }, actor) =>
      shownProject(await projects.update(project, { archived: false }, actor)),
    'restore an archived project',
    showProjects,
  ),
}
