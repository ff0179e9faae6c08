/** `gatewayctl models custom`: custom providers and models of an organization. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { ShownManifest } from '../admin/commands/catalogue.ts'
import type { DeclaredProvider } from '../core/ports.ts'
import { adder } from './adder.ts'
import { errorCode, Failure, type Io } from './io.ts'
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
export function addCustomModels(models: Command, open: Open): void {
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
