/** Which targets no proxy is used for: entries as curl reads them in NO_PROXY, also with ports. */
import { type Address, type AddressRange, inRange, parseAddress, parseRange } from '../core/address.ts'

/** One entry: a name with all below it, an address or a range, or everything; for one port or for all. */
type Entry = { readonly port: string | undefined } & (
  | { readonly name: string }
  | { readonly range: AddressRange }
  | { readonly all: true }
)

/** Tells of a target, as `URL` spells its host and port, whether it is exempt. */
type Exemption = (hostname: string, port: string) => boolean

const PORT = /^(.*):(\d{1,5})$/
const NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/
/** Addresses of this machine, which another one does not reach. */
const LOOPBACK = ['localhost', '127.0.0.0/8', '::1', '0.0.0.0', '::']
/** Where clouds serve a machine its credentials: a proxy would get those of its own machine, or none. */
const METADATA = ['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::/32', 'metadata.google.internal']

/** Splits the text of NO_PROXY. */
export const splitNoProxy = (written: string | readonly string[]): string[] =>
  (typeof written === 'string' ? [written] : written).flatMap(text => text.split(/[\s,]+/)).filter(Boolean)

/** Undefined for what is no entry. */
export function parseNoProxy(written: string): Entry | undefined {
  const text = written.toLowerCase()
  if (text === '*') return { all: true, port: undefined }
  // An IPv6 address has colons, and no port without brackets.
  if (parseRange(text)) return { range: parseRange(text)!, port: undefined }
  const [, before, port] = PORT.exec(text) ?? []
  const host = before ?? text
  const range = parseRange(host.replace(/^\[([^\]]*)\]/, '$1'))
  if (range) return { range, port }
  const name = host.replace(/^\*?\.(?=.)/, '').replace(/\.$/, '')
  return NAME.test(name) ? { name, port } : undefined
}

/** The exemption that valid entries stand for. */
export function exemption(written: readonly string[]): Exemption {
  const entries = written.map(text => parseNoProxy(text)).filter(entry => entry !== undefined)
  return (hostname, port) => {
    const host = hostname
      .replace(/^\[|\]$/g, '')
      .replace(/\.$/, '')
      .toLowerCase()
    const address = parseAddress(host)
    return entries.some(entry => (entry.port === undefined || entry.port === port) && holds(entry, host, address))
  }
}

function holds(entry: Entry, host: string, address: Address | undefined): boolean {
  if ('all' in entry) return true
  if ('range' in entry) return address !== undefined && inRange(entry.range, address)
  return host === entry.name || (address === undefined && host.endsWith(`.${entry.name}`))
}

/** Whether a target is on this machine. */
export const isLoopback = exemption(LOOPBACK)
/** Whether a target is the metadata service of a cloud. */
export const isMetadata = exemption(METADATA)
