/** The names of this server, and the web pages that may call endpoints beyond the API of models. */

/** The names under which the gateway is reached, for checks of `Host` and `Origin`. */
export interface Site {
  /** Where clients reach it as its operator says; undefined where nothing is said. */
  readonly publicUrl: URL | undefined
  /** Further names, `host[:port]` in lower case. */
  readonly hosts: ReadonlySet<string>
  /** Further web origins that may call it. */
  readonly origins: ReadonlySet<string>
}

const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']

/**
 * Scheme and host that a request has reached us by, for links: `https://gateway.example.com`. Undefined for a `Host` that
 * is no name of ours. `port` is that of the listener: a server without a public name has those of the loopback.
 */
export function baseOf({ publicUrl, hosts }: Site, host: string | undefined, port: number): string | undefined {
  const authority = host?.toLowerCase()
  if (!authority) return undefined
  const scheme = publicUrl?.protocol ?? 'http:'
  const isOurs =
    authority === publicUrl?.host ||
    hosts.has(authority) ||
    (isLocal(publicUrl) &&
      LOOPBACK.some(name => authority === `${name}:${port}` || (port === 80 && authority === name)))
  return isOurs ? `${scheme}//${authority}` : undefined
}

const isLocal = (publicUrl: URL | undefined): boolean => !publicUrl || LOOPBACK.includes(publicUrl.hostname)

/** Whether a page of this origin may call: one of ours, or one that the operator lists. */
export function isOwnOrigin(site: Site, origin: string, port: number): boolean {
  if (site.origins.has(origin.toLowerCase())) return true
  const [, host] = /^https?:\/\/([^/]+)$/i.exec(origin) ?? []
  return baseOf(site, host, port) === origin.toLowerCase()
}
