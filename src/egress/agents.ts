/** Agents of undici for addresses of the operator's own that are called now and then. */
import { Agent } from 'undici'
import type { Egress } from '../lib/egress.ts'
import type { ConnectorOptions } from './connector.ts'
import { plainConnector } from './paused-answers.ts'

const MAX_HEADER_BYTES = 16 * 1024
/** Agents of one group. Every reload that changes `egress` makes others; an agent without requests holds nothing. */
const MAX_AGENTS = 64

/** Agents that keep no socket, one for each way that connections leave. */
export class Agents {
  readonly #maxBytes: number
  readonly #lookup: ConnectorOptions
  readonly #agents = new Map<string, Agent>()

  /** `maxBytes` of an answer. */
  constructor(maxBytes: number, lookup: ConnectorOptions = {}) {
    this.#maxBytes = maxBytes
    this.#lookup = lookup
  }

  of(egress: Egress | undefined): Agent {
    const key = egress?.id ?? ''
    let agent = this.#agents.get(key)
    if (agent) return agent
    agent = new Agent({
      pipelining: 0,
      maxResponseSize: this.#maxBytes,
      maxHeaderSize: MAX_HEADER_BYTES,
      connect: plainConnector({ ...this.#lookup, egress }),
    })
    if (this.#agents.size === MAX_AGENTS) this.#agents.delete(this.#agents.keys().next().value!)
    this.#agents.set(key, agent)
    return agent
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#agents.values()].map(agent => agent.destroy()))
  }
}
