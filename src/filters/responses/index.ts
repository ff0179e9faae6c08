/** Stores responses for the requests that continue them, where the project says so (docs/responses.md#state). */
import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import { type Infer, s } from '../../core/schema.ts'
import { ExchangeResponses, type StoredBounds } from './stored-responses.ts'

/** Oldest responses of an organization, or of a session, that one new response may displace: some milliseconds. */
const MAX_DISPLACED = 200

const options = s.object({
  /** JSON of one response with what its own request added; larger ones are not stored. */
  max_response: s.default(s.size(), '4MiB'),
  /** Maximum size of one organization's responses; beyond it the oldest are removed. */
  organization: s.default(s.size(), '1GiB'),
  /** Maximum size of one end user's session, within the organization's; beyond it the session's oldest are removed. */
  session: s.default(s.size(), '64MiB'),
  /** Responses that one request may continue, or take items of. */
  max_chain: s.default(s.integer({ minimum: 1, maximum: 10_000, description: 'a count from 1 to 10000' }), 1000),
})

/** Sets `ExchangeInput.stored` where the project stores responses and its policy allows it. */
export const responses: FilterFactory<Infer<typeof options>> = {
  name: 'responses',
  options,
  needs: ['principal'],
  appliesTo: ({ codec }) => codec.stored !== undefined,
  create({ max_response: maxBytes, organization: bytes, session, max_chain: maxChain }, services) {
    const bounds: StoredBounds = { maxBytes, maxChain, share: { bytes, session, dropped: MAX_DISPLACED } }
    const needs = {
      responses: services.responses,
      memory: services.memory,
      log: services.log,
      now: services.now,
    }
    const opened = new WeakMap<Exchange, ExchangeResponses>()
    return {
      handle(ex, next) {
        const storeMs = ex.caller.policy?.keepsReplies === false ? undefined : ex.caller.principal?.responsesMs
        if (storeMs !== undefined) {
          const stored = new ExchangeResponses(ex, ex.endpoint.codec.stored!, storeMs, bounds, needs)
          opened.set(ex, stored)
          ex.input.stored = stored
        }
        return next()
      },
      finish(ex) {
        opened.get(ex)?.release()
      },
    }
  },
}
