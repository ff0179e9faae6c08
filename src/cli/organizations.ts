/** `gatewayctl orgs` and `projects`. */
import { type Command, Option } from 'commander'
import type { OrganizationRecord, ProjectRecord } from '../core/ports.ts'
import { every } from './pages.ts'
import type { Open } from './session.ts'
import { table } from './table.ts'

const showOrganizations = (organizations: readonly OrganizationRecord[]): string =>
  table(
    ['id', 'name', 'account', 'plan', 'retains data', 'created'],
    organizations.map(({ id, name, account, plan, retains, createdAt }) => [
      id,
      name,
      account,
      plan ?? 'none',
      retains ? 'yes' : 'no',
      createdAt.slice(0, 10),
    ]),
  )

const HOUR_MS = 3_600_000

const showProjects = (projects: readonly ProjectRecord[]): string =>
  table(
    ['id', 'name', 'organization', 'mode', 'cache', 'responses', 'status', 'passes parameters', 'created'],
    projects.map(({ id, name, organization, mode, cacheTtlMs, responsesMs, status, passesParameters, createdAt }) => [
      id,
      name,
      organization,
      mode,
      cacheTtlMs === null ? 'off' : `${cacheTtlMs / 1000}s`,
      responsesMs === null ? 'off' : `${responsesMs / HOUR_MS}h`,
      status,
      passesParameters ? 'yes' : 'no',
      createdAt.slice(0, 10),
    ]),
  )

const choice = (flags: string, description: string, ...choices: string[]) =>
  new Option(flags, description).choices(choices)

const addOrganizationOptions = (command: Command): Command =>
  command
    .addOption(choice('--account <kind>', 'whether its balance may fall below zero', 'prepaid', 'open'))
    .addOption(choice('--retain <on|off>', 'whether it pays for the storage of its data', 'on', 'off'))

const addProjectOptions = (command: Command): Command =>
  command
    .addOption(choice('--mode <mode>', 'whose provider keys it uses', 'credits', 'api-keys', 'hybrid'))
    .addOption(choice('--cache <on|off>', 'whether the response cache replays whole answers', 'on', 'off'))
    .option('--cache-ttl <time>', 'lifetime of cached answers: 60s, 10m, 12h; turns the cache on')
    .addOption(
      choice(
        '--pass-parameters <on|off>',
        'whether stop, seed, logprobs and the like are sent to providers',
        'on',
        'off',
      ),
    )
    .addOption(
      choice(
        '--prompt-cache <auto|off>',
        'whether prompts are marked for providers that cache marked prompts only',
        'auto',
        'off',
      ),
    )
    .option('--responses <time>', 'how long responses are stored: 12h, 30d; off stores none')

/** Adds `orgs create`, `list` and `update`. */
export function addOrganizations(program: Command, open: Open): void {
  const organizations = program.command('orgs').description('organizations')
  const one = (organization: OrganizationRecord) => showOrganizations([organization])

  addOrganizationOptions(
    organizations
      .command('create')
      .alias('add')
      .description('create an organization: prepaid, without credits')
      .requiredOption('--name <name>', 'its name'),
  ).action(async (options, command) => {
    const { admin, print } = open(command)
    print(await admin.command<OrganizationRecord>('orgs.create', options), one)
  })

  organizations
    .command('list')
    .description('list organizations')
    .action(async (_, command) => {
      const { admin, print } = open(command)
      print(await every<OrganizationRecord>(admin, 'orgs.list'), showOrganizations)
    })

  addOrganizationOptions(
    organizations
      .command('update')
      .description('change an organization; omitted options stay unchanged')
      .argument('<org>', 'id or name of the organization')
      .option('--name <name>', 'its new name'),
  ).action(async (organization, options, command) => {
    const { admin, print } = open(command)
    print(await admin.command<OrganizationRecord>('orgs.update', { organization, ...options }), one)
  })
}

/** Adds `projects create`, `list`, `update`, `archive` and `restore`. */
export function addProjects(program: Command, open: Open): void {
  const projects = program.command('projects').description('projects of organizations')
  const one = (project: ProjectRecord) => showProjects([project])

  addProjectOptions(
    projects
      .command('create')
      .alias('add')
      .description('make a project')
      .requiredOption('--org <org>', 'id or name of the organization')
      .requiredOption('--name <name>', 'its name'),
  ).action(async ({ org: organization, ...options }, command) => {
    const { admin, print } = open(command)
    print(await admin.command<ProjectRecord>('projects.create', { organization, ...options }), one)
  })

  projects
    .command('list')
    .description('list projects')
    .option('--org <org>', 'only those of this organization')
    .action(async ({ org: organization }, command) => {
      const { admin, print } = open(command)
      print(await every<ProjectRecord>(admin, 'projects.list', { organization }), showProjects)
    })

  addProjectOptions(
    projects
      .command('update')
      .description('change a project; omitted options stay unchanged')
      .argument('<project>', 'id or name of the project')
      .option('--name <name>', 'its new name'),
  ).action(async (project, options, command) => {
    const { admin, print } = open(command)
    print(await admin.command<ProjectRecord>('projects.update', { project, ...options }), one)
  })

  for (const [name, description] of [
    ['archive', 'archive a project: its requests get 410'],
    ['restore', 'restore an archived project'],
  ] as const) {
    projects
      .command(name)
      .description(description)
      .argument('<project>', 'id or name of the project')
      .action(async (project, _, command) => {
        const { admin, print } = open(command)
        print(await admin.command<ProjectRecord>(`projects.${name}`, { project }), one)
      })
  }
}
