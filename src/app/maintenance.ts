/** Finds the stores that a configuration names, for commands that work on them without a gateway. */
import { dirname, resolve } from 'node:path'
import { loadGateway } from '../config/load.ts'
import { locateConfig } from '../config/locate.ts'
import type { Env } from '../config/reference.ts'
import type { GatewayFile } from '../config/schemas/gateway.ts'
import { Secrets } from '../references/index.ts'
import { keyFile } from '../stores/keyring.ts'
import type { Maintenance } from '../stores/maintenance.ts'
import { maintenanceOf, pingRedis } from '../stores/open.ts'

/** A configuration, and where its stores are. */
export interface ConfiguredStores {
  readonly gateway: GatewayFile
  /** Path of the configuration file. */
  readonly config: string
  /** Path of the database file. */
  readonly database: string
  /** Path of the master keys, unless the environment gives them. */
  readonly keys: string
  /** Rejects with the reason where Redis cannot be used; undefined where none is configured. */
  readonly redis: (() => Promise<void>) | undefined
  open(): Promise<Maintenance>
}

/** Reads the file that `--config` and the environment name. Throws a ConfigError. */
export async function configuredStores(option: string | undefined, env: Env, cwd: string): Promise<ConfiguredStores> {
  const { path, packaged } = locateConfig(option, env, cwd)
  const config = resolve(cwd, path)
  // The database of the packaged file belongs in the working folder, as at a start.
  const data = env.GATEWAY_DATA || (packaged ? 'data' : undefined)
  const places = data === undefined ? env : { ...env, GATEWAY_DATA: resolve(cwd, data) }
  const { value: gateway } = await loadGateway(config, { env: places, secrets: new Secrets({ env }) })
  const database = resolve(dirname(config), gateway.stores.sqlite)
  const { postgres, redis: address } = gateway.stores
  const redis = address === undefined ? undefined : () => pingRedis(address)
  const open = () => maintenanceOf({ sqlite: database, postgres })
  return { gateway, config, database, keys: keyFile(database), redis, open }
}
