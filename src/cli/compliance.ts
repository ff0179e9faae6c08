/** `gatewayctl compliance`. */
import { type Command, Option } from 'commander'
import type { SetCompliance, ShownCompliance } from '../admin/commands/compliance.ts'
import { listOf } from './lists.ts'
import { type Open, warnUnknown } from './session.ts'
import { facts } from './table.ts'

function showPolicy({ organization, policy }: ShownCompliance): string {
  if (!policy) return `${organization} has no requirements for providers\n`
  const list = (entries: readonly string[]) => entries.join(', ')
  const on = (demanded: boolean) => (demanded ? 'on' : 'off')
  return facts([
    ['no training', on(policy.noTraining)],
    ['no logging', on(policy.noLogging)],
    ['GDPR', on(policy.gdpr)],
    ['SOC 2', policy.soc2 === undefined ? 'off' : `type ${policy.soc2}`],
    ['ISO 27001', on(policy.iso27001)],
    ['SOC 2 type 2 or ISO 27001', on(policy.soc2OrIso27001)],
    ['countries', list(policy.countries)],
    ['allowed providers', list(policy.allowedProviders)],
    ['blocked providers', list(policy.blockedProviders)],
    ['allowed models', list(policy.allowedModels)],
    ['blocked models', list(policy.blockedModels)],
  ])
}

/** A requirement that is on or off. */
const toggle = (flag: string, description: string): Option =>
  new Option(`--${flag} <on|off>`, description).choices(['on', 'off'])
const isOn = (value: 'on' | 'off' | undefined): boolean | undefined =>
  value === undefined ? undefined : value === 'on'

/** Adds `compliance show`, `set` and `clear`. */
export function addCompliance(program: Command, open: Open): void {
  const compliance = program.command('compliance').description('requirements of organizations for providers')

  compliance
    .command('show')
    .description('show the requirements of an organization')
    .requiredOption('--org <organization>', 'id or name of the organization')
    .action(async ({ org }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ShownCompliance>('compliance.show', { organization: org }), showPolicy)
    })

  compliance
    .command('set')
    .description(
      'change requirements; a provider that does not state a fact fails the requirement; lists may be empty: ""',
    )
    .requiredOption('--org <organization>', 'id or name of the organization')
    .addOption(toggle('block-training', 'providers do not train on API data'))
    .addOption(
      toggle('zdr', 'zero data retention: providers keep no prompts, and no answer is replayed from the cache'),
    )
    .addOption(toggle('gdpr', 'providers comply with GDPR'))
    .addOption(new Option('--soc2 <type>', 'providers have a SOC 2 report of this type').choices(['1', '2', 'off']))
    .addOption(toggle('iso27001', 'providers have an ISO 27001 certificate'))
    .addOption(toggle('soc2-or-iso27001', 'providers have a SOC 2 type 2 report or an ISO 27001 certificate'))
    .option('--countries <list>', 'providers have their headquarters in these countries', listOf)
    .option('--allow-providers <list>', 'only these providers', listOf)
    .option('--block-providers <list>', 'never these providers', listOf)
    .option('--allow-models <list>', 'only these models', listOf)
    .option('--block-models <list>', 'never these models', listOf)
    .action(async (options, command) => {
      const session = open(command)
      const { admin, print } = session
      const args = {
        organization: options.org,
        noTraining: isOn(options.blockTraining),
        noLogging: isOn(options.zdr),
        gdpr: isOn(options.gdpr),
        soc2: options.soc2,
        iso27001: isOn(options.iso27001),
        soc2OrIso27001: isOn(options.soc2OrIso27001),
        countries: options.countries,
        allowedProviders: options.allowProviders,
        blockedProviders: options.blockProviders,
        allowedModels: options.allowModels,
        blockedModels: options.blockModels,
      }
      const made = await admin.command<SetCompliance>('compliance.set', args)
      print(made, showPolicy)
      warnUnknown(made, session)
    })

  compliance
    .command('clear')
    .description('remove all requirements')
    .requiredOption('--org <organization>', 'id or name of the organization')
    .action(async ({ org }, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ShownCompliance>('compliance.clear', { organization: org }), showPolicy)
    })
}
