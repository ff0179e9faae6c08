/** The configuration of the MCP server and its authorization server. */
import type { Site } from './site.ts'

/** The section `mcp` of gateway.yaml, with defaults. */
export interface McpOptions {
  readonly site: Site
  /** The model of the tool `generate-nano-banana`. */
  readonly nanoBanana: string
  /** Bytes that the files of `UPLOAD_DIR` may have together. */
  readonly maxSaved: number
  readonly streams: StreamLimits
  readonly oauth: OAuthOptions
}

/** How many streams of the transport of 2024-11-05 may be open at once. */
export interface StreamLimits {
  readonly perKey: number
  readonly perOrganization: number
  readonly perProcess: number
}

/** Settings of the authorization server. Times are in milliseconds. */
export interface OAuthOptions {
  /** Whether a client's id may be the address of a document that describes it. */
  readonly readsDocuments: boolean
  /** Private-use schemes that redirect URIs may have. */
  readonly redirectSchemes: ReadonlySet<string>
  readonly codeMs: number
  readonly accessTokenMs: number
  readonly refreshTokenMs: number
  readonly loginCodeMs: number
  /** A minute, for each client address: registrations, and wrong attempts at consent and of clients. */
  readonly limits: { readonly register: number; readonly consent: number; readonly clientAuth: number }
}
