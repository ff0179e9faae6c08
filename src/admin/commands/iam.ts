/** Access rules of organizations, members and keys. */
import { ruleTypes } from '../../core/policy.ts'
import type { RuleRecord } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { keyId, member, organization, pageArguments, pageOf } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'
import { id, names } from './policy-args.ts'

const price = s.string({ description: 'a price in USD per million tokens, such as "2.50"' })

/** → with `unknown`: names of models and providers that the organization does not have yet. */
export type AddedRule = RuleRecord & { readonly unknown: readonly string[] }

/** `iam.*`: access rules. */
export const iamCommands: CommandTable = {
  'iam.add': command(
    s.object({
      organization: s.optional(organization),
      member: s.optional(member),
      key: s.optional(keyId),
      type: s.enum(...ruleTypes),
      models: s.optional(names),
      providers: s.optional(names),
      pricing: s.optional(s.enum('free', 'paid')),
      maxInputPrice: s.optional(price),
      maxOutputPrice: s.optional(price),
      ipCidrs: s.optional(names),
    }),
    async ({ organization, member, key, type, ...value }, { policies }, actor): Promise<AddedRule> => {
      const record = await policies.rules.add({ organization, member, key, type, value }, actor)
      return { ...record, unknown: await policies.unknown(record.organization, record.value) }
    },
  ),
  'iam.list': command(
    s.object({
      organization: s.optional(organization),
      member: s.optional(member),
      key: s.optional(keyId),
      ...pageArguments,
    }),
    ({ after, limit, ...scope }, { policies }) => policies.rules.list(scope, pageOf({ after, limit })),
  ),
  /** An inactive rule is stored but not applied. */
  'iam.update': command(
    s.object({ id, organization: s.optional(organization), status: s.enum('active', 'inactive') }),
    ({ id, organization, status }, { policies }, actor) => policies.rules.setStatus(id, status, organization, actor),
  ),
  'iam.remove': command(
    s.object({ id, organization: s.optional(organization) }),
    ({ id, organization }, { policies }, actor) => policies.rules.remove(id, organization, actor),
  ),
}
