/** `gatewayctl providers`, `models` and `explain`: what the running configuration holds. */
import type { Command } from 'commander'
import type { ExplainedChain } from '../admin/commands/explain.ts'
import type { ListedModel } from '../admin/commands/models.ts'
import type { ListedProvider } from '../admin/commands/providers.ts'
import type { Open } from './session.ts'
import { table } from './table.ts'

const showProviders = (providers: readonly ListedProvider[]): string =>
  table(
    ['id', 'name', 'status', 'variables', 'models', 'wires', 'credentials'],
    providers.map(({ id, name, status, variables, models, wires, credentials }) => [
      id,
      name,
      status,
      variables.join(', '),
      models,
      Object.values(wires).join(', '),
      credentials.map(({ fingerprint }) => fingerprint).join(', '),
    ]),
  )

/** One row for every offer. */
const showModels = (models: readonly ListedModel[]): string =>
  table(
    ['model', 'provider', 'live', 'context', 'input USD/M', 'output USD/M', 'aliases'],
    models.flatMap(({ id, aliases, providers, contextLength }) =>
      providers.length === 0
        ? [[id, null, 'no', contextLength, null, null, aliases.join(', ')]]
        : providers.map(offer => [
            id,
            offer.provider,
            offer.live ? 'yes' : 'no',
            offer.contextLength,
            offer.inputPerMillion,
            offer.outputPerMillion,
            aliases.join(', '),
          ]),
    ),
  )

function showChain({ endpoint, method, path, compat, chain, filters, end }: ExplainedChain): string {
  const rows = filters.map(({ name, runs, needs, gives, options }) => [
    name,
    runs,
    needs.join(', '),
    gives.join(', '),
    options === undefined ? null : JSON.stringify(options),
  ])
  const last = end === 'provider' ? 'the call to the provider' : 'answered by the gateway itself'
  const choices = compat === undefined ? '' : `compat ${JSON.stringify(compat)}\n`
  return `${endpoint}: ${method} ${path}, chain "${chain}", from top to bottom\n${choices}\n${table(
    ['filter', 'runs', 'needs', 'gives', 'options'],
    rows,
  )}\nthen ${last}\n`
}

export function addCatalogue(program: Command, open: Open): void {
  program
    .command('providers')
    .description('model providers')
    .command('list')
    .description('which are live, and which lack a credential')
    .action(async (_, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ListedProvider[]>('providers.list'), showProviders)
    })

  program
    .command('models')
    .description('models')
    .command('list')
    .description('who offers them, at which price')
    .argument('[query]', 'part of a name, alias, family or provider')
    .action(async (query, _, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ListedModel[]>('models.list', { query }), showModels)
    })

  program
    .command('explain')
    .description('the compiled filter chain of an endpoint: what runs once per request, what once per attempt')
    .argument('<endpoint>', 'name or path: chat, /v1/chat/completions')
    .action(async (endpoint, _, command) => {
      const { admin, print } = open(command)
      print(await admin.command<ExplainedChain>('explain', { endpoint }), showChain)
    })
}
