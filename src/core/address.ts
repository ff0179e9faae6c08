/** Network addresses: how they are written, which ranges hold them, and which hosts are out in the public. */
import ipaddr from 'ipaddr.js'

/** An IPv4 address in its IPv6 form (`::ffff:1.2.3.4`) is an IPv4 address. */
export interface Address {
  readonly bits: 32 | 128
  readonly value: bigint
}

/** All addresses that share their first `prefix` bits. */
export interface AddressRange extends Address {
  readonly prefix: number
}

/**
 * Reads `192.0.2.7`, `2001:db8::1` and `::ffff:192.0.2.7`; undefined for anything else: octal, hexadecimal and short
 * forms of IPv4, which the library would read, and zones (`fe80::1%eth0`).
 */
export function parseAddress(text: string): Address | undefined {
  if (text.length > MAX_IP_CHARACTERS || !PLAIN.test(text)) return undefined
  const dotted = text.slice(text.lastIndexOf(':') + 1)
  if (dotted.includes('.') && !ipaddr.IPv4.isValidFourPartDecimal(dotted)) return undefined
  if (dotted === text) return dotted.includes('.') ? addressOf(ipaddr.IPv4.parse(text)) : undefined
  // The library would read `::192.0.2.7` as `::ffff:192.0.2.7`.
  const v6 = text.replace(COMPATIBLE, '0::')
  return ipaddr.IPv6.isValid(v6) ? addressOf(ipaddr.process(v6)) : undefined
}

const MAX_IP_CHARACTERS = '0000:0000:0000:0000:0000:ffff:255.255.255.255'.length
const PLAIN = /^[0-9a-f:.]+$/i
const COMPATIBLE = /^::(?=\d+\.)/

function addressOf(address: ipaddr.IPv4 | ipaddr.IPv6): Address {
  const bytes = address.toByteArray()
  const value = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
  return { bits: bytes.length === 4 ? 32 : 128, value }
}

/** Reads `10.0.0.0/8`, `2001:db8::/32`, or one address, which is a range of itself; undefined for anything else. */
export function parseRange(text: string): AddressRange | undefined {
  const [, written = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = parseAddress(written)
  if (!address) return undefined
  if (length === undefined) return { ...address, prefix: address.bits }
  // A range that is written in IPv6 form counts the 96 bits before the IPv4 address.
  const prefix = Number(length) - (address.bits === 32 && written.includes(':') ? 96 : 0)
  return prefix >= 0 && prefix <= address.bits ? { ...address, prefix } : undefined
}

/** Whether the address is of the range; never for another family. */
export function inRange(range: AddressRange, address: Address): boolean {
  if (range.bits !== address.bits) return false
  const rest = BigInt(range.bits - range.prefix)
  return range.value >> rest === address.value >> rest
}

/** The first and the last address of a range: to compare takes a tenth of the time that shifts take. */
function spanOf({ bits, value, prefix }: AddressRange) {
  const rest = BigInt(bits - prefix)
  const from = (value >> rest) << rest
  return { bits, from, to: from + (1n << rest) - 1n }
}

/**
 * Not reachable from everywhere, by the IANA registries of special-purpose addresses; and the address at which every
 * machine of Azure reaches the host below it.
 */
const SPECIAL =
  `168.63.129.16 0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3
  2001::/23 2001:db8::/32 2002::/16 3fff::/20`
    .split(/\s+/)
    .map(text => spanOf(parseRange(text)!))
/** All of IPv6 that is routed; the rest holds other families' addresses, `::127.0.0.1` too. */
const ROUTED_IPV6 = parseRange('2000::/3')!

/** Last labels that no public registry gives out: of RFC 6762 and 8375, and of what runs within networks. */
const LOCAL_NAMES = /(^|\.)(localhost|localdomain|local|internal|intranet|lan|corp|svc|consul|home\.arpa)\.?$/i
/** Public names that may resolve to any address. */
const WILDCARD_NAMES = /(^|\.)((nip|sslip|xip)\.io|lvh\.me|localtest\.me)\.?$/i

/**
 * Whether a host, as `URL.hostname` writes it, can be out in the public; of a name only its look is judged, because
 * it is not resolved here. WHATWG parsing has already turned every spelling of an address into its plain form.
 */
export function isPublicHost(hostname: string): boolean {
  const address = parseAddress(hostname.replace(/^\[|\]$/g, ''))
  if (!address) {
    return hostname.includes('.') && !LOCAL_NAMES.test(hostname) && !WILDCARD_NAMES.test(hostname)
  }
  if (address.bits === 128 && !inRange(ROUTED_IPV6, address)) return false
  return !SPECIAL.some(({ bits, from, to }) => bits === address.bits && from <= address.value && address.value <= to)
}

/**
 * The client's address: the last one on the way that is not a `trusted` proxy. `forwarded` is `X-Forwarded-For`, to
 * which every proxy appends its peer. Clients can forge it, so it is read from the end, as far as trusted proxies
 * wrote it. Undefined when it holds no such address.
 */
export function clientAddress(
  peer: string,
  forwarded: string | undefined,
  trusted: readonly AddressRange[],
): Address | undefined {
  const hops = trusted.length > 0 && forwarded ? forwarded.split(',') : []
  // A link-local address comes with its interface: `fe80::1%eth0`.
  let address = parseAddress(peer.split('%', 1)[0]!)
  while (address && hops.length > 0 && isTrusted(address, trusted)) address = parseHop(hops.pop()!)
  return address
}

/**
 * Returns the key of a limit per address: an IPv4 address, or the /64 network of an IPv6 subscriber. All callers
 * without a known address share one key.
 */
export function addressKey(address: Address | undefined): string {
  if (!address) return 'unknown'
  return address.bits === 32 ? `v4 ${address.value}` : `v6 ${address.value >> 64n}`
}

/** Some proxies write the port too: `192.0.2.7:443`, `[2001:db8::1]:443`. */
const parseHop = (hop: string): Address | undefined =>
  parseAddress(hop.trim().replace(/^\[([^\]]*)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/, '$1$2'))

const isTrusted = (address: Address, trusted: readonly AddressRange[]): boolean =>
  trusted.some(range => inRange(range, address))
