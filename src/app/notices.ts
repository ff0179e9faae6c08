/** Terminal output of the start: its success, or why it failed. */
import { fstatSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError } from '../config/error.ts'
import { type Located, PACKAGE } from '../config/locate.ts'
import type { Env } from '../config/reference.ts'
import { isAbsent, isLive } from '../core/offer.ts'
import type { Gateway } from './gateway.ts'
import { version } from './version.ts'

const INIT = '`npx model-gateway init`'
/** npx finds other commands only of a package that is installed, not of one that npx itself fetched. */
const CTL = /[\\/]_npx[\\/]/.test(PACKAGE) ? 'npx -p model-gateway gatewayctl' : 'npx gatewayctl'

/** Error codes of the operating system for a host that cannot be listened on. */
const UNUSABLE = new Set(['EADDRINUSE', 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'])

type Started = Pick<Gateway, 'listen' | 'admin' | 'publicUrl' | 'catalog' | 'database' | 'firstKey'>

/** Whether standard output goes to the system's journal (systemd.exec(5), `JOURNAL_STREAM`). */
function isJournal({ JOURNAL_STREAM }: Env): boolean {
  const { dev, ino } = fstatSync(1)
  return JOURNAL_STREAM === `${dev}:${ino}`
}

/**
 * Writes the first key to a file of its owner's, where what is printed goes to the journal. Returns its path; undefined
 * where the key may be printed.
 */
export function keyFileFor({ database, firstKey }: Started, env: Env): string | undefined {
  if (firstKey === undefined || !isJournal(env)) return undefined
  const path = join(dirname(database), 'first.key')
  writeFileSync(path, `${firstKey}\n`, { mode: 0o600 })
  return path
}

/** Notice of a successful start, with next steps; `keyPath` as `keyFileFor` returns it. */
export function announcement(started: Started, { path, packaged }: Located, keyPath?: string): string {
  const { listen, admin, publicUrl, catalog, database, firstKey } = started
  const providers = [...catalog.providers.values()]
  const live = providers.filter(provider => isLive(provider) && !isAbsent(provider, catalog))
  const lines = [
    `Model Gateway ${version}`,
    `  listens on   http://${listen}`,
    ...(publicUrl === undefined ? [] : [`  public URL   ${publicUrl}`]),
    `  admin        http://${admin}`,
    `  page         http://${admin}/ui (sign in with the content of ${join(dirname(database), 'admin.token')})`,
    `  config       ${packaged ? `packaged (${INIT} copies it here)` : path}`,
    `  data         ${dirname(database)}`,
    `  serves       ${catalog.models.size} models, ${providers.length} providers of which ${live.length} live`,
    '',
  ]
  if (firstKey) {
    const shown = keyPath === undefined ? firstKey : `$(cat ${keyPath})`
    lines.push(
      ...(keyPath === undefined
        ? ['Your API key, shown only this once:', '', `  ${firstKey}`, '']
        : [`Your API key is in ${keyPath}, which only you can read.`, '']),
      ...(catalog.providers.has('demo') ? ['Try it:', '', curl(listen, shown), ''] : []),
    )
  } else {
    lines.push(`Make a key with: ${CTL} keys create --project default`, '')
  }
  if (live.length < providers.length) {
    lines.push(`For more models set OPENAI_API_KEY or another variable, and restart. All: ${CTL} providers list`, '')
  }
  return lines.join('\n')
}

/** Replaces an any-address host by loopback. */
const curl = (listen: string, key: string): string =>
  `  curl http://${listen.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')}/v1/chat/completions -H "Authorization: Bearer ${key}" ` +
  `-H "Content-Type: application/json" -d '{"model":"demo","messages":[{"role":"user","content":"Hello!"}]}'`

/** Why the gateway did not start, and how to correct that. */
export function explanation(thrown: unknown, { path, packaged }: Located): string {
  if (thrown instanceof ConfigError) return `gateway: ${thrown}`
  const { code, message, port } = thrown as NodeJS.ErrnoException & { port?: number }
  if (port !== undefined || (code !== undefined && UNUSABLE.has(code))) {
    const where = packaged ? `a copy of the configuration (${INIT})` : path
    const why = code === 'EADDRINUSE' ? `port ${port} is in use; end the other process, or` : `${message};`
    return `gateway: ${why} change server.listen (or set HOST and PORT) or server.admin (or set GATEWAY_ADMIN_LISTEN) in ${where}`
  }
  return `gateway: ${message ?? thrown}`
}
