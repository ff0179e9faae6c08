/** The gateway before every chat wire, each of which is a provider with one model of its name. */
import { startGateway, upstreamSecret } from '../../helpers/gateway.ts'
import { shared } from '../../helpers/shared.ts'
import { startUpstream } from '../../helpers/upstream.ts'
import { manifestOf, wires } from './wires.ts'

/** Files that use it neither end nor reload it, and count what is theirs. */
export const everyWire = shared(async t => {
  const upstream = await startUpstream(t, { key: upstreamSecret })
  const gateway = await startGateway(t, {
    providers: Object.fromEntries(wires.map(wire => [wire.id, manifestOf(wire, upstream, wire.id, [wire.id])])),
    config: { endpoints: { chat: { ratelimit: { rpm: 100_000 } } } },
  })
  return { upstream, gateway }
})
