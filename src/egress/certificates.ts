/** Ends of the certificates that servers of the operator's choice have shown. */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { DAY_MS } from '../lib/period.ts'

/** Hosts that are kept; further ones are not noted. */
const MAX_HOSTS = 500

interface Shown {
  /** Unix seconds. */
  readonly end: number
  /** Unix milliseconds. */
  readonly seenAt: number
}

/** The certificates of this process, by host. */
const shown = new Map<string, Shown>()

/** Notes the certificate of a new connection; what has none is ignored. */
export function noteCertificate(host: string, socket: Socket, now = Date.now()): void {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined
  const end = Date.parse(certificate?.validTo ?? '') / 1000
  if (!Number.isNaN(end) && (shown.has(host) || shown.size < MAX_HOSTS)) shown.set(host, { end, seenAt: now })
}

/** Hosts that were connected to within a day, and when the certificate of each ends, in Unix seconds. */
export function certificateEnds(now = Date.now()): { readonly host: string; readonly end: number }[] {
  for (const [host, { seenAt }] of shown) if (now - seenAt > DAY_MS) shown.delete(host)
  return [...shown].map(([host, { end }]) => ({ host, end }))
}
