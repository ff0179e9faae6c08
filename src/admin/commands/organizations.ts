/** Organizations and their projects. */
import { s } from '../../core/schema.ts'
import {
  cacheTtl,
  durationOf,
  name,
  organization,
  pageArguments,
  pageOf,
  project,
  responsesTime,
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
    ({ organization, name, account, retain }, { organizations }, actor) => {
      const retains = retain === undefined ? undefined : retain === 'on'
      return organizations.update(organization, { name, account, retains }, actor)
    },
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
      const passesParameters = passParameters === undefined ? undefined : passParameters === 'on'
      const cachesPrompts = promptCache === undefined ? undefined : promptCache === 'auto'
      const settings = { cacheTtlMs: ttlOf(cache), passesParameters, cachesPrompts, responsesMs: storedOf(responses) }
      return projects.update(project, { name, mode, ...settings }, actor)
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
