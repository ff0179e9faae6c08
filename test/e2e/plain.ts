/** The gateway before one provider, `a`, for tests of what clients send, and of what their organizations may do. */
import { startGateway, testMapping, upstreamSecret } from '../helpers/gateway.ts'
import { shared } from '../helpers/shared.ts'
import { startUpstream } from '../helpers/upstream.ts'

const priced = (model: string, prompt: string, completion = '0') => ({
  ...testMapping,
  model,
  id: `${model}-1`,
  pricing: { prompt, completion },
})
const rpm = 1_000_000

/** Files that use it neither end nor change it; they count what is theirs, and make organizations of their own. */
export const plainGateway = shared(async t => {
  const upstream = await startUpstream(t, { key: upstreamSecret })
  const gateway = await startGateway(t, {
    providers: {
      a: {
        base_url: upstream.url('a'),
        // Nano-USD per token: `test` 1000 and 2000, and the premium model 6000 and 2000.
        models: [
          testMapping,
          { ...testMapping, model: 'small', id: 'small-1' },
          { ...priced('searching', '1'), supports: ['streaming', 'tools', 'web_search'] },
          priced('premium', '6', '2'),
          priced('free', '0'),
          priced('cheap', '1'),
          priced('dear', '100'),
        ],
      },
    },
    config: {
      // Ten requests of test/e2e/limits.test.ts, and three at the premium model.
      plans: { lite: { monthly: '0.00025', weekly_premium: '0.00015' } },
      endpoints: {
        chat: {
          ratelimit: { rpm, rules: [{ plans: ['lite'], rpm: 1200, concurrency: 300 }] },
          admission: { in_flight: 10_000, lag: '60s' },
        },
        messages: { ratelimit: { rpm } },
        sessions: { ratelimit: { rpm: 40 } },
        oauth: { ratelimit: { rpm } },
      },
      // Three streams of a key, for test/e2e/mcp-stream.test.ts.
      mcp: { limits: { register: rpm }, streams: { per_key: 3 } },
    },
  })
  return { upstream, gateway }
})
