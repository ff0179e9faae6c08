/** Settings of LiteLLM that have a place in `gateway.yaml`. */
import type { Report } from './report.ts'
import { listOf, type Section, sectionOf, textOf } from './sections.ts'

/** Members of `gateway.yaml`; `attempts` is that of the filter route. */
export interface GatewaySettings {
  readonly attempts?: number
  readonly end_users?: Section
}

const MAX_ATTEMPTS = 10

export function readSettings(input: Section, report: Report): GatewaySettings {
  const endUsers = endUsersOf(input, report)
  const attempts = attemptsOf(input, report)
  return {
    ...(attempts !== undefined && { attempts }),
    ...(Object.keys(endUsers).length > 0 && { end_users: endUsers }),
  }
}

/** Retries of the router count before the other ones. */
function attemptsOf(input: Section, report: Report): number | undefined {
  let attempts: number | undefined
  for (const part of ['router_settings', 'litellm_settings']) {
    const { num_retries: retries } = sectionOf(input[part])
    if (attempts !== undefined) report.lost(`${part}.num_retries`, 'router_settings.num_retries counts before it')
    else if (Number.isSafeInteger(retries) && Number(retries) >= 0) {
      attempts = Math.min(Number(retries) + 1, MAX_ATTEMPTS)
      report.changed(`${part}.num_retries`, `attempts of the filter route: one more, at most ${MAX_ATTEMPTS}`)
    }
  }
  return attempts
}

function endUsersOf({ general_settings, litellm_settings }: Section, report: Report): Section {
  const { user_header_name, user_header_mappings } = sectionOf(general_settings)
  const { max_end_user_budget: budget } = sectionOf(litellm_settings)
  const mapped = listOf(user_header_mappings).map(sectionOf)
  const customer = mapped.findIndex(({ litellm_user_role: role }) => role === 'customer')
  const named = textOf(user_header_name) ?? textOf(mapped[customer]?.header_name)
  const header = named !== undefined && /^[A-Za-z0-9-]{1,64}$/.test(named) ? named.toLowerCase() : undefined
  const isLimit = typeof budget === 'number' && /^\d{1,8}(?:\.\d{1,9})?$/.test(String(budget)) && budget > 0
  const keys = ['general_settings.user_header_name', `general_settings.user_header_mappings[${customer}]`]
  if (header !== undefined) report.carried(keys, 'end_users.header of gateway.yaml')
  if (isLimit) report.changed('litellm_settings.max_end_user_budget', 'end_users.default_limit, of all time')
  return {
    ...(header !== undefined && { header }),
    ...(isLimit && { default_limit: { amount: String(budget), period: 'total' } }),
  }
}
