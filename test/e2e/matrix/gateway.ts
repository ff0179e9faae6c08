/** The gateway before every chat wire: each is a provider with a model of its name, and others that stand in for it. */
import { startGateway, testMapping, upstreamSecret } from '../../helpers/gateway.ts'
import { shared } from '../../helpers/shared.ts'
import { startUpstream } from '../../helpers/upstream.ts'
import { type ChatWire, manifestOf, pricing, wires } from './wires.ts'

export const nextOf = (wire: ChatWire) => wires[(wires.indexOf(wire) + 1) % wires.length]!
const previousOf = (wire: ChatWire) => wires.at(wires.indexOf(wire) - 1)!

/** Claude again, with a model that thinks by a budget. */
export const budgeted: readonly ChatWire[] = wires
  .filter(({ model }) => model.includes('claude'))
  .map(wire => ({
    ...wire,
    id: `${wire.id}-budget`,
    model: wire.model.replace(/claude-[a-z]+-[0-9-]*[0-9]/, 'claude-haiku-4-5'),
    efforts: [],
  }))
const always = { ...testMapping, model: 'always', id: 'claude-opus-5-5', reasoning_efforts: ['low', 'high'] }
const marked = { model: 'marking', id: 'claude-sonnet-5', pricing, cache: 'auto' }
const claude = wires.find(({ wire }) => wire === 'anthropic.messages')!
const other = wires[0]!
const fast = { ratelimit: { rpm: 100_000 } }

/** Files that use it neither end nor reload it, and count what is theirs. */
export const everyWire = shared(async t => {
  const upstream = await startUpstream(t, { key: upstreamSecret })
  const offer = (wire: ChatWire, id: string, models: string[], more?: object) => [
    id,
    manifestOf(wire, upstream, id, models, { ...more }),
  ]
  const gateway = await startGateway(t, {
    providers: Object.fromEntries([
      // Each wire twice: a provider that is asked first, and another that is asked when the first one fails.
      ...wires.flatMap(wire => [
        offer(wire, wire.id, [wire.id, `${wire.id}-twin`, `${wire.id}-next`], { priority: 2 }),
        offer(wire, `${wire.id}-spare`, [`${wire.id}-twin`, `${previousOf(wire).id}-next`], { priority: 1 }),
      ]),
      ...budgeted.map(wire => offer(wire, wire.id, [wire.id])),
      // A loop that the first begins and the second goes on with.
      ...budgeted.map(wire => offer(wire, `${wire.id}-late`, [`${wire.id}-late`])),
      offer(
        other,
        'early',
        budgeted.map(({ id }) => `${id}-late`),
        { priority: 2 },
      ),
      offer(claude, 'always', [], { priority: 2, models: [always] }),
      offer(other, 'able', ['always']),
      offer(claude, 'marking', [], {
        models: [{ ...testMapping, supports: ['streaming', 'tools', 'prompt_cache'], ...marked }],
      }),
    ]),
    config: { endpoints: { chat: fast, responses: fast, gemini: fast } },
  })
  return { upstream, gateway }
})
