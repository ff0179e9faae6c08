/** `end_users:` of `gateway.yaml`: how requests name their end users, and what each may spend. */
import { parseMoney } from '../../core/money.ts'
import type { EndUserOptions } from '../../core/policy.ts'
import { type Infer, s } from '../../core/schema.ts'
import { periods } from '../../lib/period.ts'

const header = s.string({
  pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$",
  description: 'the name of a header such as "x-openwebui-user-id"',
})
const field = s.string({
  pattern: '^[^.\\s]{1,64}(\\.[^.\\s]{1,64}){0,3}$',
  description: 'a member of the body such as "user" or "metadata.customer"',
})

/** The section; without it, end users are known by the body alone. */
export const endUsersEntry = s.optional(
  s.object({
    header: s.optional(header),
    field: s.default(field, 'user'),
    default_limit: s.optional(
      s.object({
        amount: s.decimal({
          pattern: '^\\d{1,9}(\\.\\d{1,9})?$',
          description: 'an amount of USD in quotes, such as "5.00"',
        }),
        period: s.default(s.enum(...periods, 'total'), 'month'),
        on_limit: s.optional(s.either(s.enum('refuse', 'notify'), s.object({ use: s.string({ minLength: 1 }) }))),
      }),
    ),
  }),
)

/** The options of end users. */
export const endUserOptions = (entry: Infer<typeof endUsersEntry> | undefined): EndUserOptions | undefined =>
  entry && {
    header: entry.header?.toLowerCase(),
    field: entry.field,
    limit: entry.default_limit && {
      limit: parseMoney(entry.default_limit.amount),
      period: entry.default_limit.period,
      onLimit: entry.default_limit.on_limit,
    },
  }
