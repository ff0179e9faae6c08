/** The processes that share the stores. */
import { hostname } from 'node:os'
import type { NodeState } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command, rows } from '../command.ts'
import type { AdminContext } from '../context.ts'

/** A node with times in ISO 8601. */
export type ShownNode = ReturnType<typeof shownNode>
export const shownNode = (node: NodeState) => ({
  id: node.id,
  host: node.host,
  pid: node.pid,
  version: node.version,
  started: new Date(node.startedAt).toISOString(),
  seen: new Date(node.seenAt).toISOString(),
  state: node.state,
  inFlight: node.inFlight,
  address: node.address,
})

/** On one machine's own database: this gateway alone. */
async function self({ state }: AdminContext): Promise<NodeState> {
  const { pid, version, uptimeMs, inFlight, listen, ready } = await state()
  const now = Date.now()
  const address = listen === '' ? null : listen
  return {
    ...{ id: 'local', host: hostname(), pid, version, startedAt: now - uptimeMs, seenAt: now },
    ...{ state: ready ? 'live' : 'draining', inFlight, address },
  }
}

/** `nodes.*`. */
export const nodeCommands: CommandTable = {
  'nodes.list': command(
    s.object({}),
    async (_, context) => (await (context.nodes?.list() ?? Promise.all([self(context)]))).map(shownNode),
    'list the nodes that share the database: where they are, whether they live, and what they serve',
    rows<ShownNode>('id, host, version, seen, state, in flight, address', one => {
      return [one.id, one.host, one.version, one.seen.slice(0, 19), one.state, one.inFlight, one.address]
    }),
  ),
}
