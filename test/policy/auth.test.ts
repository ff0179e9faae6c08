/** How a policy comes to a request: with the principal, and before anything is read. */

import t from 'tap'
import type { Policies, RuleType } from '../../src/core/policy.ts'
import type { Services } from '../../src/core/ports.ts'
import type { Reply } from '../../src/core/reply.ts'
import { auth } from '../../src/filters/auth.ts'
import { GatewayError } from '../../src/lib/error.ts'
import { errors } from '../../src/plugin.ts'
import { eventsOf, exchange, principal } from '../core/kit.ts'
import { policyOf, rule } from './kit.ts'

async function enter(policies: Policies, peer: string, forwarded?: string, trusted: string[] = []) {
  const ex = exchange({
    headers: { 'x-api-key': 'mgw_x', ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }) },
    peer,
  })
  const services: object = { keys: { find: () => principal }, policies, now: () => 0 }
  const filter = auth.create({ optional: false, trusted_proxies: trusted, jwt: [] }, services as Services)
  const reply: Reply = { status: 200, headers: [], events: eventsOf() }
  try {
    await filter.handle!(ex, async () => reply)
    return { ex, status: 200 }
  } catch (error) {
    if (error instanceof GatewayError) return { ex, status: error.status, code: error.code }
    throw error
  }
}

t.test('the policy and what the key may call under it are on the exchange', async t => {
  const policy = policyOf({ rules: [rule('deny_models', { models: ['x'] })] })
  for (const policies of [{ of: () => policy }, { of: async () => policy }]) {
    const { ex, status } = await enter(policies, '127.0.0.1')
    t.equal(status, 200)
    t.equal(ex.caller.policy, policy)
    t.equal(ex.caller.access, policy.access(principal))
  }
})

t.test('a policy that cannot be had refuses the request', async t => {
  const down = errors.storeUnavailable(new Error('disk'))
  const throws = () => {
    throw down
  }
  for (const of of [throws, () => Promise.reject(down)]) {
    t.match(await enter({ of }, '127.0.0.1'), { status: 503, code: 'store_unavailable' })
  }
})

t.test('rules about addresses look through proxies that are trusted, and through no others', async t => {
  const under = (type: RuleType) => ({ of: () => policyOf({ rules: [rule(type, { ipCidrs: ['192.0.2.0/24'] })] }) })
  type Row = [peer: string, forwarded: string | undefined, trusted: string[], status: number]
  const allowed: Row[] = [
    ['192.0.2.9', undefined, [], 200],
    ['::ffff:192.0.2.9', undefined, [], 200],
    ['10.0.0.1', '192.0.2.9', [], 403],
    ['10.0.0.1', '192.0.2.9', ['10.0.0.0/8'], 200],
    ['10.0.0.1', '192.0.2.9, 198.51.100.1', ['10.0.0.0/8'], 403],
    ['', undefined, [], 403],
  ]
  const denied: Row[] = [
    ['192.0.2.9', undefined, [], 403],
    ['10.0.0.1', '192.0.2.9', [], 200],
    ['10.0.0.1', '192.0.2.9', ['10.0.0.0/8'], 403],
    ['10.0.0.1', '192.0.2.9:44321', ['10.0.0.0/8'], 403],
    ['10.0.0.1', '[::ffff:192.0.2.9]:443', ['10.0.0.0/8'], 403],
    ['10.0.0.1', '198.51.100.1:44321', ['10.0.0.0/8'], 200],
    ['10.0.0.1', 'unknown', ['10.0.0.0/8'], 403],
    ['', undefined, [], 403],
  ]
  for (const [type, rows] of [['allow_ip_cidrs', allowed] as const, ['deny_ip_cidrs', denied] as const]) {
    for (const [peer, forwarded, trusted, status] of rows) {
      const got = await enter(under(type), peer, forwarded, trusted)
      t.equal(got.status, status, `${type} ${peer} ${forwarded}`)
      if (status === 403) t.equal(got.code, 'permission_denied')
    }
  }
  const wrong = () => auth.create({ optional: false, trusted_proxies: ['proxy.example'], jwt: [] }, {} as Services)
  t.throws(wrong, { message: /"proxy.example" in trusted_proxies is neither an address nor a range/ })
})
