/** What configuration says of the MCP server. */
import type { Site } from './site.ts'

/** The section `mcp` of gateway.yaml, with defaults. */
export interface McpOptions {
  readonly site: Site
  /** The model of the tool `generate-nano-banana`. */
  readonly nanoBanana: string
  readonly oauth: OAuthOptions
}

/** Of the authorization server. Times are milliseconds. */
export interface OAuthOptions {
  /** A client's id may be the address of a document that describes it. */
  readonly readsDocuments: boolean
  /** Schemes of programs that codes may be sent to. */
  readonly redirectSchemes: ReadonlySet<string>
  readonly codeMs: number
  readonly accessTokenMs: number
  readonly refreshTokenMs: number
  readonly loginCodeMs: number
  /** A minute, for each client address: registrations, and wrong attempts at consent and of clients. */
  readonly limits: { readonly register: number; readonly consent: number; readonly clientAuth: number }
}
