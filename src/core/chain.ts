/** Folds a list of filters and a terminal into one function, once per snapshot. */

import { asError } from '../lib/error.ts'
import type { Endpoint } from './endpoint.ts'
import type { Exchange } from './exchange.ts'
import type { Facet, Filter, FilterFactory } from './filter.ts'
import type { Reply } from './reply.ts'

/** A filter in its place in a chain. */
export interface Link {
  readonly factory: FilterFactory
  /** In effect, with defaults; shown by `gatewayctl explain`. */
  readonly options: unknown
  readonly filter: Filter
}

/** The filters of one endpoint, compiled: each runs around those behind it, and the terminal answers. */
export interface Chain {
  readonly links: readonly Link[]
  handle(ex: Exchange): Promise<Reply>
  /** Runs every filter's `finish`, last filter first; a filter that throws does not keep the others from theirs. */
  finish(ex: Exchange, report: (filter: string, thrown: unknown) => void): Promise<void>
}

/** Parts of an exchange that the end of a chain needs when it calls a provider. */
const terminalNeeds: readonly Facet[] = ['principal', 'quota', 'outbound', 'charge']

/**
 * The first broken rule of order, as a sentence, with the index of the filter it is about (the chain's length for
 * the terminal); undefined when the order holds.
 */
export function checkOrder(
  factories: readonly FilterFactory[],
  upstream: boolean,
  givers: (facet: Facet) => string[],
): { index: number; message: string } | undefined {
  const given = new Set<Facet>()
  for (const [index, factory] of factories.entries()) {
    const missing = factory.needs?.find(facet => !given.has(facet))
    if (missing) return { index, message: needs(`filter "${factory.name}"`, missing, givers(missing)) }
    if (factories.findIndex(other => other.name === factory.name) < index) {
      return { index, message: `filter "${factory.name}" occurs twice in one chain; keep one` }
    }
    for (const facet of factory.gives ?? []) given.add(facet)
  }
  const missing = upstream ? terminalNeeds.find(facet => !given.has(facet)) : undefined
  return missing && { index: factories.length, message: needs('the upstream call', missing, givers(missing)) }
}

const needs = (who: string, facet: Facet, givers: string[]) =>
  `${who} needs "${facet}", which no filter above it gives; put ${givers.map(name => `"${name}"`).join(' or ')} above it`

/** `instead` stands around the first filter that repeats: it answers when all attempts have failed. */
export function compile(
  links: readonly Link[],
  terminal: (ex: Exchange) => Promise<Reply>,
  instead?: Endpoint['instead'],
): Chain {
  let handle = (ex: Exchange) => {
    ex.currentFilter = 'upstream'
    return terminal(ex)
  }
  for (const [index, { factory, filter }] of [...links.entries()].reverse()) {
    const inner = handle
    const run = filter.handle?.bind(filter)
    if (!run) continue
    const { name, repeats = false } = factory
    handle = ex => {
      ex.currentFilter = name
      ex.filtersEntered = index + 1
      let called = false
      return run(ex, () => {
        if (called && !repeats) throw new Error(`filter "${name}" called next() twice`)
        called = true
        return ex.input.isLarge ? inStep(ex, inner) : inner(ex)
      })
    }
    if (repeats && instead) handle = rescued(handle, instead)
  }
  const finishers = [...links.entries()].filter(([, link]) => link.filter.finish).reverse()
  return {
    links,
    handle,
    async finish(ex, report) {
      for (const [index, { factory, filter }] of finishers) {
        try {
          const pending = filter.finish!(ex, ex.filtersEntered > index)
          if (pending) await pending
        } catch (thrown) {
          report(factory.name, thrown)
        }
      }
    },
  }
}

/** The next filter of a large request. Nothing more is done for a caller that has left meanwhile. */
async function inStep(ex: Exchange, inner: Chain['handle']): Promise<Reply> {
  return ex.step(() => {
    if (ex.signal.reason) throw ex.signal.reason
    return inner(ex)
  })
}

const rescued =
  (run: Chain['handle'], instead: NonNullable<Endpoint['instead']>): Chain['handle'] =>
  async ex => {
    try {
      return await run(ex)
    } catch (thrown) {
      const reply = ex.signal.aborted ? undefined : instead(ex, asError(thrown))
      if (!reply) throw thrown
      return reply
    }
  }
