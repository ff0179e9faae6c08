/** `gatewayctl members`. */
import { type Command, Option } from 'commander'
import type { ShownMember } from '../admin/commands/members.ts'
import { addLimitOptions, showLimits } from './limits.ts'
import { listOrAll } from './lists.ts'
import { addLoginLink } from './oauth.ts'
import { every } from './pages.ts'
import type { Open } from './session.ts'
import { table } from './table.ts'

const ROLES = ['owner', 'admin', 'developer']

const showMembers = (members: readonly ShownMember[]): string =>
  table(
    ['id', 'email', 'organization', 'role', 'projects', 'limits USD'],
    members.map(({ id, email, organization, role, projects, limits }) => [
      id,
      email,
      organization,
      role,
      projects === null ? 'all' : projects.join(', '),
      showLimits(limits),
    ]),
  )

/** Adds `members create`, `list`, `update`, `remove` and `login-link`. */
export function addMembers(program: Command, open: Open): void {
  const members = program.command('members').description('members of organizations')
  const one = (member: ShownMember) => showMembers([member])
  const addAccess = (command: Command) =>
    command.option('--projects <names>', 'accessible projects, separated by commas, or all', listOrAll)

  addLimitOptions(
    addAccess(
      members
        .command('create')
        .alias('add')
        .description('add a member')
        .requiredOption('--org <org>', 'id or name of the organization')
        .requiredOption('--email <address>', 'address of the member')
        .addOption(new Option('--role <role>', 'role').choices(ROLES).makeOptionMandatory()),
    ),
  ).action(async ({ org: organization, ...options }, command) => {
    const { admin, print } = open(command)
    print(await admin.command<ShownMember>('members.add', { organization, ...options }), one)
  })

  members
    .command('list')
    .description('list members')
    .option('--org <org>', 'only those of this organization')
    .action(async ({ org: organization }, command) => {
      const { admin, print } = open(command)
      print(await every<ShownMember>(admin, 'members.list', { organization }), showMembers)
    })

  addLimitOptions(
    addAccess(
      members
        .command('update')
        .description('change a member; omitted options stay unchanged')
        .argument('<member>', 'address or id of the member')
        .requiredOption('--org <org>', 'id or name of the organization')
        .addOption(new Option('--role <role>', 'role').choices(ROLES)),
    ),
    'amount in USD, or none to remove the limit',
  ).action(async (member, { org: organization, ...options }, command) => {
    const { admin, print } = open(command)
    print(await admin.command<ShownMember>('members.update', { organization, member, ...options }), one)
  })

  addLoginLink(members, open)

  members
    .command('remove')
    .description('end a membership; keys created by the member are refused from then on')
    .argument('<member>', 'address or id of the member')
    .requiredOption('--org <org>', 'id or name of the organization')
    .action(async (member, { org: organization }, command) => {
      const { admin, print } = open(command)
      const removed = await admin.command<ShownMember>('members.remove', { organization, member })
      print(removed, ({ email }) => `removed ${email}\n`)
    })
}
