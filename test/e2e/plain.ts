/** The gateway before one provider, `a`, for tests of what clients send. */
import { startGateway, testMapping } from '../helpers/gateway.ts'
import { shared } from '../helpers/shared.ts'
import { startUpstream } from '../helpers/upstream.ts'

const priced = (model: string, prompt: string) => ({
  ...testMapping,
  model,
  id: `${model}-1`,
  pricing: { prompt, completion: '0' },
})
const unlimited = { ratelimit: { rpm: 1_000_000 } }

/** Files that use it neither end nor reload it, and count what is theirs. */
export const plainGateway = shared(async t => {
  const upstream = await startUpstream(t)
  const gateway = await startGateway(t, {
    providers: {
      a: { base_url: upstream.url('a'), models: [testMapping, priced('cheap', '1'), priced('dear', '100')] },
    },
    config: { endpoints: { chat: unlimited, messages: unlimited } },
  })
  return { upstream, gateway }
})
