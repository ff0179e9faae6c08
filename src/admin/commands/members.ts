/** Members of organizations, and codes by which they prove who they are. */
import type { MemberRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { opaque } from '../../lib/opaque.ts'
import {
  durationOf,
  limitArguments,
  limitChange,
  limitChanges,
  limitInput,
  member,
  ofOrganization,
  organization,
  pageArguments,
  pageOf,
  project,
  rateArguments,
  rateChange,
  showLimits,
  shownLimit,
  showRates,
} from '../arguments.ts'
import { type CommandTable, command, facts, option, rows, shell } from '../command.ts'
import type { AdminContext } from '../context.ts'

const LOGIN_BYTES = 20

const email = shell(
  '--email <address>: address of the member',
  s.string({ pattern: '^[^\\s@]{1,64}@[^\\s@]{1,190}$', description: 'an address such as "ada@example.com"' }),
)
const named = { member, organization }
const role = shell('--role <role>: role', s.enum('owner', 'admin', 'developer'))
const projects = option(
  '--projects <names>: accessible projects, separated by commas, or all',
  s.either(s.enum('all'), s.array(s.string({ minLength: 1 }))),
)

/** A member record with limits as `shownLimit` shows them. */
type ShownMember = ReturnType<typeof shownMember>
const shownMember = ({ limits, ...rest }: MemberRecord) => ({ ...rest, limits: limits.map(shownLimit) })

const accessOf = (given: string | string[] | undefined): readonly string[] | null | undefined =>
  typeof given === 'string' ? null : given

const showMembers = rows<ShownMember>(
  'id, email, organization, role, projects, limits USD, rates',
  ({ id, email, organization, role, projects, limits, rateLimits }) => {
    const own = [showLimits(limits), showRates(rateLimits)]
    return [id, email, organization, role, projects === null ? 'all' : projects.join(', '), ...own]
  },
)

/** Where people find how to connect. */
async function setupUrl({ state }: AdminContext): Promise<string> {
  const { publicUrl, listen } = await state()
  return `${(publicUrl ?? `http://${listen}`).replace(/\/$/, '')}/mcp`
}

/** `members.*`. */
export const memberCommands: CommandTable = {
  /** Access to all projects unless some are named → the record. */
  'members.add': command(
    s.object({ organization, email, role, projects, ...limitArguments, ...rateArguments }),
    async ({ organization, email, role, projects, ...limits }, { members }, actor) => {
      const set = limitInput(limits)
      const input = {
        organization,
        email,
        role,
        projects: accessOf(projects),
        limit: set && { set },
        rates: rateChange(limits),
      }
      return shownMember(await members.add(input, actor))
    },
    'add a member',
    showMembers,
  ),
  'members.list': command(
    s.object({ organization: ofOrganization, ...pageArguments }),
    async ({ organization, ...page }, { members }) => (await members.list(organization, pageOf(page))).map(shownMember),
    'list members',
    showMembers,
  ),
  /** → the record. */
  'members.update': command(
    s.object({ ...named, role: s.optional(role), projects, ...limitChanges, ...rateArguments }),
    async ({ organization, member, role, projects, ...limits }, { members }, actor) => {
      const changes = { role, projects: accessOf(projects), limit: limitChange(limits), rates: rateChange(limits) }
      return shownMember(await members.update(organization, member, changes, actor))
    },
    'change a member; omitted options stay unchanged',
    showMembers,
  ),
  /** → the code, once. Its `url` is the set-up page, and never holds the code. */
  'members.login-link': command(
    s.object({
      ...named,
      project: option(
        '--project <project>: what it is for; may be left out for a member of one project, or of "default"',
        project,
      ),
      expires: option(
        '--expires <time>: how long the code is good: 90s, 10m, 1h (default: mcp.login_code)',
        s.string({ pattern: '^[1-9]\\d{0,3}[smh]$', description: 'a time such as 90s, 10m or 1h' }),
      ),
    }),
    async ({ expires, ...named }, context, actor) => {
      const ms = expires === undefined ? context.snapshot().mcp.oauth.loginCodeMs : durationOf(expires)
      const { text: code, hash } = opaque('mgw_li_', LOGIN_BYTES)
      const made = await context.oauth.grants.addLoginCode({ ...named, hash, expiresAt: Date.now() + ms }, actor)
      return { code, url: await setupUrl(context), ...made }
    },
    'make a one-time code by which a member signs a program in',
    ({ code, url, member, project, expiresAt }) =>
      `${facts([
        ['code', code],
        ['member', member],
        ['project', project],
        ['expires', expiresAt],
        ['how to connect', url],
      ])}The code is shown only this once, and good for one sign-in. It is pasted into the page that the program opens.\n`,
  ),
  'members.remove': command(
    s.object(named),
    async (args, { members }, actor) => shownMember(await members.remove(args.organization, args.member, actor)),
    'end a membership; keys created by the member are refused from then on',
    ({ email }) => `removed ${email}\n`,
  ),
}
