/** Members of organizations. */
import type { MemberRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import {
  amount,
  amountOrNone,
  limitArguments,
  limitChange,
  limitInput,
  member,
  organization,
  pageArguments,
  pageOf,
  shownLimit,
} from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'

const email = s.string({
  pattern: '^[^\\s@]{1,64}@[^\\s@]{1,190}$',
  description: 'an address such as "ada@example.com"',
})
const role = s.enum('owner', 'admin', 'developer')
const projects = s.either(s.enum('all'), s.array(s.string({ minLength: 1 })))

/** A member record with limits as `shownLimit` shows them. */
export type ShownMember = ReturnType<typeof shown>
const shown = ({ limits, ...rest }: MemberRecord) => ({ ...rest, limits: limits.map(shownLimit) })

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
      return shown(await members.add(input, actor))
    },
  ),
  'members.list': command(
    s.object({ organization: s.optional(organization), ...pageArguments }),
    async ({ organization, ...page }, { members }) => (await members.list(organization, pageOf(page))).map(shown),
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
      return shown(await members.update(organization, member, changes, actor))
    },
  ),
  /** Keys that the member has created are refused from then on. */
  'members.remove': command(s.object({ organization, member }), async (args, { members }, actor) =>
    shown(await members.remove(args.organization, args.member, actor)),
  ),
}
