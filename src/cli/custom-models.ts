/** `gatewayctl models custom`: custom providers and models of an organization. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { ShownManifest } from '../admin/commands/custom-models.ts'
import type { DeclaredProvider } from '../core/ports.ts'
import { errorCode, Failure, type Io } from './io.ts'
import { everyPart } from './pages.ts'
import type { Open } from './session.ts'
import { table } from './table.ts'

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

const showList = (manifests: readonly ShownManifest[]): string =>
  manifests.length === 0
    ? 'no custom providers; add one with `gatewayctl models custom create --org O manifest.yaml`\n'
    : table(
        ['organization', 'provider', 'address', 'models', 'created'],
        manifests.map(({ organization, provider, manifest, createdAt }) => {
          const { base_url, models } = manifest as { base_url: string; models: readonly { model: string }[] }
          return [organization, provider, base_url, models.map(({ model }) => model).join(', '), createdAt.slice(0, 10)]
        }),
      )

/** Adds the subcommand to `models`, which must exist. */
export function addCustomModels(program: Command, open: Open): void {
  const models = program.commands.find(command => command.name() === 'models')!
  const custom = models.command('custom').description('custom providers and models of an organization')

  custom
    .command('create')
    .alias('add')
    .description('declare a provider with a manifest as in providers.d, without its secret')
    .argument('[file]', 'the manifest, YAML or JSON (default: standard input)')
    .requiredOption('--org <organization>', 'id or name of the organization')
    .action(async (file, { org }, command) => {
      const { admin, print, io } = open(command)
      const args = { organization: org, manifest: await readManifest(file, io) }
      print(
        await admin.command<DeclaredProvider>('models.custom.add', args),
        ({ organization, provider, models }) => `${organization} has ${provider} now: ${models.join(', ')}\n`,
      )
    })

  custom
    .command('list')
    .description('list declared providers')
    .option('--org <organization>', 'only that of this organization')
    .action(async ({ org }, command) => {
      const { admin, print } = open(command)
      const all = await everyPart(part =>
        admin.command<ShownManifest[]>('models.custom.list', { organization: org, ...part }),
      )
      print(all, showList)
    })

  custom
    .command('remove')
    .description('withdraw a provider')
    .argument('<provider>', 'id of the provider')
    .requiredOption('--org <organization>', 'id or name of the organization')
    .action(async (provider, { org }, command) => {
      const { admin, print } = open(command)
      const removed = await admin.command<{ organization: string; provider: string }>('models.custom.remove', {
        organization: org,
        provider,
      })
      print(removed, ({ organization }) => `${organization} no longer has a custom provider ${provider}\n`)
    })
}
