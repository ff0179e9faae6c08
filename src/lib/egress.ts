/** How connections leave the gateway: `egress` of gateway.yaml and of manifests, compiled. */

/** An HTTP proxy that opens tunnels (`CONNECT`). */
export interface HttpProxy {
  readonly protocol: 'http:' | 'https:'
  /** IPv6 without brackets. */
  readonly hostname: string
  readonly port: string
  /** `host:port`, as errors name it: without user and password. */
  readonly name: string
  /** Value of `proxy-authorization`. */
  readonly authorization: string | undefined
  /** Must not be shown. */
  readonly password: string | undefined
}

/** The proxy, the trusted authorities and the certificate of connections. */
export interface Egress {
  /** A hash of all that is configured. Connections of another one are not reused. */
  readonly id: string
  readonly proxy: HttpProxy | undefined
  /** Entries of targets without a proxy; undefined where none are configured. */
  readonly noProxy: readonly string[] | undefined
  /** Whether the proxy is also used for targets on this machine. */
  readonly proxiesLoopback: boolean
  /** Returns the proxy for a target, as `URL` spells host and port; undefined where the connection is direct. */
  readonly proxyFor: (hostname: string, port: string) => HttpProxy | undefined
  /** Authorities that are trusted besides the public ones, in PEM. */
  readonly ca: string | undefined
  /** Certificate that is shown to servers, and its key, in PEM. */
  readonly client: { readonly cert: string; readonly key: string } | undefined
}
