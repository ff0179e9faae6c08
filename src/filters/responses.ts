/** Keeps answers for the requests that go on from them, where the project does (docs/responses.md#state). */
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory } from '../core/filter.ts'
import { type Infer, s } from '../core/schema.ts'
import { type KeeperOptions, ResponseKeeper } from './response-keeper.ts'

const options = s.object({
  /** JSON of one answer with what its own request added; larger ones are not kept. */
  max_response: s.default(s.size(), '4MiB'),
  /** Of one organization; beyond it its oldest go. */
  organization: s.default(s.size(), '1GiB'),
  /** Answers that one request may go on from, or take items of. */
  max_chain: s.default(s.integer({ minimum: 1, maximum: 10_000, description: 'a count from 1 to 10000' }), 1000),
})

export const responses: FilterFactory<Infer<typeof options>> = {
  name: 'responses',
  options,
  needs: ['principal'],
  appliesTo: ({ codec }) => codec.kept !== undefined,
  create({ max_response: maxBytes, organization: share, max_chain: maxChain }, services) {
    const bounds: KeeperOptions = { maxBytes, share, maxChain }
    const keepers = new WeakMap<Exchange, ResponseKeeper>()
    return {
      handle(ex, next) {
        const keepMs = ex.policy?.keepsReplies === false ? undefined : ex.principal?.responsesMs
        if (keepMs !== undefined) {
          const keeper = new ResponseKeeper(ex, ex.endpoint.codec.kept!, keepMs, bounds, services)
          keepers.set(ex, keeper)
          ex.keeper = keeper
        }
        return next()
      },
      finish(ex) {
        keepers.get(ex)?.release()
      },
    }
  },
}
