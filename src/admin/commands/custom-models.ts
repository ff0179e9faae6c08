/** Custom providers and models of an organization. */
import { s } from '../../core/schema.ts'
import { organization, partArguments, partOf } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import { provider } from './policy-args.ts'

const manifest = s.string({ minLength: 1, description: 'a manifest as in providers.d, YAML or JSON' })

/** A manifest as declared. */
export interface ShownManifest {
  readonly organization: string
  readonly provider: string
  readonly manifest: unknown
  readonly createdAt: string
}

/** `models.custom.*`: providers that organizations declare. */
export const customModelCommands: CommandTable = {
  /** → `{organization, provider, models}`. Replaces a provider with the same id. */
  'models.custom.add': command(
    s.object({ organization, manifest }),
    ({ organization, manifest }, { policies }, actor) => policies.manifests.declare(organization, manifest, actor),
  ),
  'models.custom.list': command(
    s.object({ organization: s.optional(organization), ...partArguments }),
    async ({ organization, ...part }, { policies }): Promise<ShownManifest[]> =>
      (await policies.manifests.list(organization, ...partOf(part))).map(({ manifest, ...rest }) => ({
        ...rest,
        manifest: JSON.parse(manifest) as unknown,
      })),
  ),
  'models.custom.remove': command(
    s.object({ organization, provider }),
    async ({ organization, provider }, { policies }, actor) => {
      await policies.manifests.remove(organization, provider, actor)
      return { organization, provider }
    },
  ),
}
