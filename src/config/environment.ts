/** Environment variables that override `gateway.yaml`: `HOST`, `PORT`, `GATEWAY_ADMIN_LISTEN`, `GATEWAY_DATA`. */
import { basename, resolve } from 'node:path'
import { parseAddress } from '../core/address.ts'
import type { Env } from './reference.ts'
import type { GatewayFile } from './schemas/gateway.ts'

/** `host:port` of the public listener where neither the file nor the environment names one. */
export const DEFAULT_LISTEN = '127.0.0.1:8080'
/** `host:port` of the admin listener likewise. */
export const DEFAULT_ADMIN = '127.0.0.1:9901'

const ADDRESS = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):(\d{1,5})$/
const NAME = /^[A-Za-z0-9._-]+$/
const BRACKETS = /^\[|\]$/g
const DIGITS = /^\d{1,5}$/
const MAX_PORT = 65_535

/** Undefined for what the environment leaves to the file. */
interface Overrides {
  /** As part of an address: IPv6 in brackets. */
  readonly host: string | undefined
  readonly port: number | undefined
  /** `host:port` of the admin listener. */
  readonly admin: string | undefined
  /** Folder of the database, its companion files, and results of jobs. */
  readonly data: string | undefined
}

/** Reads the overrides; an empty variable counts as unset. Throws an Error that names the variable. */
export const readOverrides = ({ HOST, PORT, GATEWAY_ADMIN_LISTEN, GATEWAY_DATA }: Env): Overrides => ({
  host: HOST ? hostOf(HOST) : undefined,
  port: PORT ? portOf(PORT) : undefined,
  admin: GATEWAY_ADMIN_LISTEN ? adminOf(GATEWAY_ADMIN_LISTEN) : undefined,
  data: GATEWAY_DATA || undefined,
})

/**
 * The file with the overrides; a relative `GATEWAY_DATA` is resolved from the working folder. Throws as `readOverrides`
 * does.
 */
export function withEnvironment(file: GatewayFile, env: Env): GatewayFile {
  const { host, port, admin, data } = readOverrides(env)
  if (host === undefined && port === undefined && admin === undefined && data === undefined) return file
  const { server, stores, jobs } = file
  const { listen = DEFAULT_LISTEN } = server
  const end = listen.lastIndexOf(':')
  const address = `${host ?? listen.slice(0, end)}:${port ?? listen.slice(end + 1)}`
  const moved = (path: string) => (data === undefined ? path : resolve(data, basename(path)))
  return {
    ...file,
    server: { ...server, listen: address, admin: admin ?? server.admin },
    stores: { ...stores, sqlite: moved(stores.sqlite) },
    jobs: { ...jobs, blobs: moved(jobs.blobs) },
  }
}

function hostOf(text: string): string {
  if (NAME.test(text)) return text
  const address = text.replace(BRACKETS, '')
  if (!address.includes(':') || !parseAddress(address))
    throw wrong('HOST', text, 'a host or an address without a port, such as "0.0.0.0" or "::"')
  return `[${address}]`
}

function adminOf(text: string): string {
  const port = ADDRESS.exec(text)?.[2]
  if (port !== undefined && Number(port) <= MAX_PORT) return text
  throw wrong('GATEWAY_ADMIN_LISTEN', text, 'a host and a port, such as "127.0.0.1:8081"')
}

function portOf(text: string): number {
  if (!DIGITS.test(text) || Number(text) > MAX_PORT) throw wrong('PORT', text, `a number from 0 to ${MAX_PORT}`)
  return Number(text)
}

const wrong = (name: string, value: string, expected: string): Error =>
  new Error(`the environment variable ${name} is "${value}"; it must be ${expected}`)
