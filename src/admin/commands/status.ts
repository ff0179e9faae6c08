/** Status of the gateway. */
import type { PoolState, ProviderState } from '../../core/ports.ts'
import { s } from '../../core/schema.ts'
import { type CommandTable, command, facts } from '../command.ts'
import type { AdminContext } from '../context.ts'
import { type ShownNode, shownNode } from './nodes.ts'

/** Whether the gateway can serve requests; `reason` names the part that cannot. */
export interface Readiness {
  readonly ready: boolean
  readonly reason?: string
  /** `"ok"`, or the error of the database. */
  readonly database: string
  /** Undefined where no Redis is configured. Nodes are ready without it: each takes its share of limits. */
  readonly redis?: RedisState
}

/** Redis as this node sees it. */
interface RedisState {
  readonly connected: boolean
  readonly error?: string
  /** Processes that serve requests, as Redis said last. */
  readonly nodes: number
}

/** The one answer for `/ready` and `status`. */
export async function readiness(context: AdminContext): Promise<Readiness> {
  const [{ ready }, database, redis] = await Promise.all([
    context.state(),
    databaseStatus(context),
    redisState(context),
  ])
  const stores = redis ? { database, redis } : { database }
  if (!ready) return { ready, reason: 'starting or draining', ...stores }
  if (database !== 'ok') return { ready: false, reason: 'the database is down', ...stores }
  return { ready, ...stores }
}

async function redisState({ redis }: AdminContext): Promise<RedisState | undefined> {
  if (!redis) return undefined
  try {
    await redis.ping()
    return { connected: true, nodes: redis.nodes }
  } catch (thrown) {
    return { connected: false, error: thrown instanceof Error ? thrown.message : String(thrown), nodes: redis.nodes }
  }
}

/** `ok`, or the error of the database. */
export async function databaseStatus(context: AdminContext): Promise<string> {
  try {
    await context.ping()
    return 'ok'
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown)
  }
}

/** The output of `gatewayctl status`. */
export type Status = Awaited<ReturnType<typeof status>>
async function status(context: AdminContext) {
  const { version: configVersion, catalog } = context.snapshot()
  const health = await context.providerHealth()
  const count = (...states: ProviderState[]) => health.filter(({ status }) => states.includes(status)).length
  return {
    ...(await context.state()),
    ...(await readiness(context)),
    configVersion,
    references: context.references(),
    models: catalog.models.size,
    providers: catalog.providers.size,
    liveProviders: count('live', 'degraded'),
    failingProviders: count('degraded', 'failing', 'credential failing'),
    ...(await nodesOf(context)),
  }
}

/** The nodes, where several share the database; none while it is down. */
async function nodesOf({ nodes }: AdminContext): Promise<{ nodes?: readonly ShownNode[] }> {
  const found = await nodes?.list().catch(() => undefined)
  return found ? { nodes: found.map(shownNode) } : {}
}

/** 93_784_000 → `1d 2h`; the two largest units. */
function span(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  const shown = first === -1 ? parts.slice(-1) : parts.slice(first, first + 2)
  return shown.map(([count, unit]) => `${count}${unit}`).join(' ')
}

const showStatus = (status: Status): string =>
  facts([
    ['state', status.ready ? 'ready' : `not ready: ${status.reason}`],
    ['version', status.version],
    ['listens on', status.listen],
    ...(status.publicUrl === undefined ? [] : [['public URL', status.publicUrl] as const]),
    ['process', `${status.pid}, up ${span(status.uptimeMs)}`],
    ...(status.workers ?? []).map(worker => ['worker', showWorker(worker)] as const),
    ['in flight', status.inFlight],
    ['database', status.database],
    ...(status.redis ? [['redis', showRedis(status.redis)] as const] : []),
    ...(status.nodes ?? []).map(node => ['node', showNode(node)] as const),
    ...(status.pools ?? []).map(pool => [`${pool.name} pool`, showPool(pool)] as const),
    ['configuration', status.configVersion],
    ['last reload', lastReload(status)],
    ...status.references.map(reference => ['secret of', reference] as const),
    ['providers', `${status.providers}, ${status.liveProviders} live, ${status.failingProviders} failing`],
    ['models', status.models],
  ])

const showRedis = ({ connected, error, nodes }: RedisState): string =>
  `${connected ? 'ok' : `away, each process takes its share of limits: ${error}`}, ${nodes} processes`

const showNode = ({ id, host, version, state, inFlight, address, seen }: ShownNode): string =>
  `${id} at ${host}, ${version}, ${state}, ${inFlight} in flight, seen ${seen}${address === null ? '' : `, ${address}`}`

const showPool = ({ inUse, most, waiting }: PoolState): string => `${inUse} of ${most} in use, ${waiting} waiting`

const showWorker = ({
  pid,
  ready,
  uptimeMs,
  inFlight,
  configVersion,
}: NonNullable<Status['workers']>[number]): string =>
  ready
    ? `${pid}, up ${span(uptimeMs)}, ${inFlight} in flight, configuration ${configVersion}`
    : `${pid}, not ready: starting or draining`

const lastReload = ({ lastReload: { ok, at, error, warnings = [] } }: Status): string =>
  `${ok ? 'ok' : 'failed'} at ${new Date(at).toISOString()}${error ? `: ${error}` : ''}${warnings
    .map(warning => `; warning: ${warning}`)
    .join('')}`

/** `status`. */
export const statusCommands: CommandTable = {
  status: command(s.object({}), (_, context) => status(context), 'show the status of the gateway', showStatus),
}
