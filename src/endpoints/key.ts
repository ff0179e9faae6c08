/** `GET /v1/key`: what a key may still spend, interface 2.10. */
import { json } from '../codecs/json.ts'
import { type Endpoint, value } from '../core/endpoint.ts'
import { errors } from '../core/error.ts'
import { formatMoney } from '../core/money.ts'

export const key: Endpoint = {
  name: 'key',
  method: 'GET',
  path: '/v1/key',
  chain: 'local',
  codec: json,
  bodyLimit: 0,
  async serve(ex, { keys }) {
    const { principal } = ex
    if (!principal) throw errors.noCredentials()
    if (principal.kind !== 'key') throw errors.forbidden('Only regular gateway API keys may read their status.')
    return value({
      data: {
        label: principal.keyName,
        usage: formatMoney(await keys.spent(principal.keyId)),
        limit: null,
        devPlan: 'none',
        devPlanCreditsUsed: '0',
        devPlanCreditsLimit: '0',
        devPlanCreditsRemaining: '0',
        devPlanPremiumWeeklyLimit: '0',
        devPlanPremiumCreditsUsed: '0',
        devPlanPremiumWeekResetsAt: null,
      },
    })
  },
}
