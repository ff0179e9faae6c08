/** Compliance requirements of organizations. */
import type { Compliance } from '../../core/policy.ts'
import { s } from '../../core/schema.ts'
import { organization } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import { names } from './policy-args.ts'

/** `organization` as named in the command; `policy` is null without requirements. */
export interface ShownCompliance {
  readonly organization: string
  readonly policy: Compliance | null
}
/** → with `unknown`: names of models and providers that the organization does not have yet. */
export type SetCompliance = ShownCompliance & { readonly unknown: readonly string[] }

/** `compliance.*`: what organizations demand of providers. */
export const complianceCommands: CommandTable = {
  'compliance.show': command(
    s.object({ organization }),
    async ({ organization }, { policies }): Promise<ShownCompliance> => ({
      organization,
      policy: await policies.compliance.show(organization),
    }),
  ),
  /** Omitted requirements stay unchanged; `soc2: "off"` removes the requirement. */
  'compliance.set': command(
    s.object({
      organization,
      noTraining: s.optional(s.boolean()),
      noLogging: s.optional(s.boolean()),
      gdpr: s.optional(s.boolean()),
      soc2: s.optional(s.enum('1', '2', 'off')),
      iso27001: s.optional(s.boolean()),
      soc2OrIso27001: s.optional(s.boolean()),
      countries: s.optional(names),
      allowedProviders: s.optional(names),
      blockedProviders: s.optional(names),
      allowedModels: s.optional(names),
      blockedModels: s.optional(names),
    }),
    async ({ organization, soc2, ...rest }, { policies }, actor): Promise<SetCompliance> => {
      const changes = { ...given(rest), ...(soc2 && { soc2: soc2 === 'off' ? undefined : soc2 }) }
      const policy = await policies.compliance.change(organization, changes, actor)
      const { allowedModels, blockedModels, allowedProviders, blockedProviders } = policy
      const names = {
        models: [...allowedModels, ...blockedModels],
        providers: [...allowedProviders, ...blockedProviders],
      }
      return { organization, policy, unknown: await policies.unknown(organization, names) }
    },
  ),
  'compliance.clear': command(
    s.object({ organization }),
    async ({ organization }, { policies }, actor): Promise<ShownCompliance> => {
      await policies.compliance.clear(organization, actor)
      return { organization, policy: null }
    },
  ),
}

/** Without undefined members. */
const given = <T extends object>(changes: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
