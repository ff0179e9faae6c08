/** `gatewayctl providers`, `models` and `explain`: the contents of the configuration. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import type { ExplainedChain, ListedModel, ListedProvider, ShownManifest } from '../admin/commands/catalogue.ts'
import type { ModelsCheck } from '../app/check-models.ts'
import { locateConfig } from '../config/locate.ts'
import type { CircuitHealth, DeclaredProvider, ProviderHealth } from '../core/ports.ts'
import { adder } from './adder.ts'
import { CheckFailed, errorCode, Failure, type Io } from './io.ts'
import type { Open } from './session.ts'
import { table } from './table.ts'

/** The wires are in the JSON alone: some providers have ten. */
const showProviders = (providers: readonly ListedProvider[]): string =>
  table(
    ['id', 'name', 'status', 'models', 'credentials', 'variables'],
    providers.map(({ id, name, status, variables, models, credentials }) => {
      const fingerprints = credentials.map(({ fingerprint }) => fingerprint)
      return [id, name, status, models, fingerprints.join(', '), variables.join(', ')]
    }),
  )

const showCircuit = ({ circuit, openMs }: CircuitHealth): string =>
  circuit === 'open' && openMs > 0 ? `open ${Math.ceil(openMs / 1000)}s` : circuit

const showHealth = (providers: readonly ProviderHealth[]): string =>
  table(
    ['id', 'status', 'credentials', 'offers', 'not closed'],
    providers.map(({ id, status, credentials, offers, broken }) => [
      id,
      status,
      credentials.map(one => `${one.fingerprint} ${showCircuit(one)}`).join(', '),
      offers,
      broken.map(one => `${one.offer} ${showCircuit(one)}`).join(', '),
    ]),
  )

/** One row per offer. */
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
  const rows = filters.map(({ name, runs, needs, gives, options }) => {
    return [name, runs, needs.join(', '), gives.join(', '), JSON.stringify(options)]
  })
  const last = end === 'provider' ? 'the call to the provider' : 'answered by the gateway itself'
  const choices = compat === undefined ? '' : `compat ${JSON.stringify(compat)}\n`
  return `${endpoint}: ${method} ${path}, chain "${chain}", from top to bottom\n${choices}\n${table(
    ['filter', 'runs', 'needs', 'gives', 'options'],
    rows,
  )}\nthen ${last}\n`
}

interface CheckOptions {
  readonly plugins?: boolean
  readonly olderThan: number
  readonly strict?: boolean
}

/** At most a century. */
function wholeDays(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(`"${text}" is not a whole number of days`)
}

function showCheck({ models, providers, offers, warnings }: ModelsCheck): string {
  const counts = `${offers} offers of ${models} models by ${providers} providers`
  if (warnings.length === 0) return `no warnings: ${counts}\n`
  const rows = warnings.map(({ model, provider, warning, since }) => [model, provider, warning, since])
  return `${table(['model', 'provider', 'warning', 'since'], rows)}\n${warnings.length} warnings: ${counts}\n`
}

async function readManifest(path: string | undefined, io: Io): Promise<string> {
  if (path === undefined || path === '-') {
    const text = await io.in?.()
    if (text?.trim()) return text
    throw new Failure('no manifest on standard input; name a file, or redirect one: `< manifest.yaml`')
  }
  try {
    return await readFile(resolve(io.cwd, path), 'utf8')
  } catch (thrown) {
    throw new Failure(`cannot read ${path} (${errorCode(thrown)})`)
  }
}

const showManifests = (manifests: readonly ShownManifest[]): string =>
  manifests.length === 0
    ? 'no custom providers; add one with `gatewayctl models custom create --org O manifest.yaml`\n'
    : table(
        ['organization', 'provider', 'address', 'models', 'created'],
        manifests.map(({ organization, provider, manifest, createdAt }) => {
          const { base_url, models } = manifest as { base_url: string; models: readonly { model: string }[] }
          return [organization, provider, base_url, models.map(({ model }) => model).join(', '), createdAt.slice(0, 10)]
        }),
      )

/** Adds the subcommand to `models`. */
function addCustomModels(models: Command, open: Open): void {
  const custom = models.command('custom').description('custom providers and models of an organization')
  const add = adder(custom, 'models.custom', open)
  const organization = '--org <organization>: id or name of the organization'
  add<DeclaredProvider>(
    'create',
    'declare a provider with a manifest as in providers.d, without its secret',
    { manifest: '[file]: the manifest, YAML or JSON (default: standard input)', organization },
    ({ organization, provider, models }) => `${organization} has ${provider} now: ${models.join(', ')}\n`,
    {
      async call({ admin, io }, { manifest, organization }) {
        const text = await readManifest(manifest as string | undefined, io)
        return admin.command('models.custom.add', { organization, manifest: text })
      },
    },
  )
  add(
    'list',
    'list declared providers',
    { organization: '--org <organization>: only that of this organization' },
    showManifests,
  )
  add(
    'remove',
    'withdraw a provider',
    { provider: '<provider>: id of the provider', organization },
    ({ organization, provider }: { organization: string; provider: string }) =>
      `${organization} no longer has a custom provider ${provider}\n`,
  )
}

/** Adds `providers health`, `list`, `models list`, `check`, `custom`, and `explain`. */
export function addCatalogue(program: Command, open: Open): void {
  const add = adder(program.command('providers').description('model providers'), 'providers', open)
  const health = 'show the state of each provider, its credentials, and its offers whose circuits are not closed'
  add('health', health, {}, showHealth)
  add('list', 'list providers: live, failing, or without a credential', {}, showProviders)

  const models = program.command('models').description('models')
  const query = '[query]: part of a name, alias, family or provider'
  adder(models, 'models', open)('list', 'list models, their providers and prices', { query }, showModels)

  models
    .command('check')
    .description('find old or missing prices and deactivated models in the configuration files; needs no gateway')
    .option('--older-than <days>', 'age from which a price is old', wholeDays, 90)
    .option('--plugins', 'run the modules of catalog.plugins, which may do anything')
    .option('--strict', 'exit with status 1 when there is a warning')
    .action(async (options: CheckOptions, command: Command) => {
      const { io, config, print } = open(command)
      const [{ readCatalog }, { checkModels }] = await Promise.all([
        import('../app/check.ts'),
        import('../app/check-models.ts'),
      ])
      const { path } = locateConfig(config, io.env, io.cwd)
      const { catalog } = await readCatalog(resolve(io.cwd, path), options)
      const checked = checkModels(catalog, options.olderThan, new Date().toISOString().slice(0, 10))
      print(checked, showCheck)
      if (options.strict && checked.warnings.length > 0) throw new CheckFailed()
    })

  addCustomModels(models, open)

  adder(program, '', open)(
    'explain',
    'show the compiled filter chain of an endpoint: what runs once per request, what once per attempt',
    { endpoint: '<endpoint>: name or path: chat, /v1/chat/completions' },
    showChain,
  )
}
