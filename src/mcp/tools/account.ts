/** `get-account`: the connected account, and the remaining limits of its key. */
import { keyUsage } from '../../core/key-usage.ts'
import { type Money, toNumber } from '../../core/money.ts'
import { type Infer, s } from '../../core/schema.ts'
import { spanOf } from '../../lib/period.ts'
import { orNull, structured, type Tool, time } from '../tool.ts'
import { iso, isResult, reader, reading, roleOf, scope, scopeOf } from './analytics.ts'

const text = s.string()
const usd = s.number()
const output = s.object({
  user: orNull(s.object({ id: text, name: orNull(text) })),
  organization: s.object({ id: text, name: text, kind: s.enum('standard', 'coding-plan') }),
  project: s.object({ id: text, name: text }),
  role: s.enum('owner', 'admin', 'developer'),
  usageScope: scope,
  apiKey: s.object({
    id: text,
    name: text,
    usageUsd: usd,
    usageLimitUsd: orNull(usd),
    periodUsageUsd: usd,
    periodUsageLimitUsd: orNull(usd),
    periodStartedAt: orNull(time),
    expiresAt: orNull(time),
  }),
  creditsBalanceUsd: orNull(usd),
})

const dollars = (amount: Money | undefined): number | null => (amount === undefined ? null : toNumber(amount))

/** The credit balance is for owners and admins only. */
export const getAccount: Tool = {
  name: 'get-account',
  title: 'Account',
  description:
    'Shows the connected user, organization and project, the role, what analytics cover, the limits of the API key, ' +
    'and to owners and admins the credit balance. Costs nothing.',
  scope: 'usage:read',
  input: s.object({}),
  output: output.json,
  run: (_args, context) =>
    reading(context, async () => {
      const { services } = context
      const principal = reader(context)
      if (isResult(principal)) return principal
      const [names, status] = await Promise.all([services.reports.caller(principal), services.keys.status(principal)])
      const { usage, total, recurring } = keyUsage(status)
      const role = roleOf(principal)
      const funds = role === 'developer' ? undefined : await services.ledger.balance(principal.orgId)
      const span =
        recurring && recurring.period !== 'total' ? spanOf(recurring.period, recurring.zone, services.now()) : undefined
      const answer: Infer<typeof output> = {
        user: principal.member ? { id: principal.member.id, name: names.email } : null,
        organization: {
          id: principal.orgId,
          name: principal.orgName,
          kind: principal.plan ? 'coding-plan' : 'standard',
        },
        project: { id: principal.projectId, name: names.project },
        role,
        usageScope: scopeOf(principal),
        apiKey: {
          id: principal.keyId,
          name: principal.keyName,
          usageUsd: toNumber(usage),
          usageLimitUsd: dollars(total?.limit),
          periodUsageUsd: toNumber(recurring?.spent ?? 0n),
          periodUsageLimitUsd: dollars(recurring?.limit),
          periodStartedAt: iso(span?.start),
          expiresAt: iso(principal.expiresAt),
        },
        creditsBalanceUsd: dollars(funds?.balance),
      }
      return structured(answer)
    }),
}
