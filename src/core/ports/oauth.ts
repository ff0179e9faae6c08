/**
 * Clients that act for the holder of a key, and what they were granted (RFC 6749). Secrets, codes and tokens are here by
 * their SHA-256 in hex alone. Everything rejects with a GatewayError, 503 when the store fails.
 */
import type { Actor, Page } from './accounts.ts'

/** The grant types that the token endpoint takes (RFC 6749 sections 4.1, 4.4 and 6). */
export type GrantType = 'authorization_code' | 'refresh_token' | 'client_credentials'
/** How a client authenticates at the token endpoint; `none` for a public one (RFC 7591 section 2). */
export type ClientAuthentication = 'none' | 'client_secret_basic' | 'client_secret_post'

/** A client to register. */
export interface NewClient {
  readonly id: string
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly grantTypes: readonly GrantType[]
  readonly method: ClientAuthentication
  /** Null for a public client. */
  readonly secretHash: string | null
  readonly scopes: readonly string[]
  /** The key of a client that acts for itself, without a user's consent; null for none. */
  readonly keyId: string | null
}
/** A registered client, as endpoints read it. */
export interface OAuthClient extends NewClient {
  /** Unix milliseconds. */
  readonly createdAt: number
  /** When it was last granted something, or issued a token. */
  readonly usedAt: number | null
}
/** A registered client as commands return it; `scope` has spaces between its parts. */
export interface ClientRecord {
  readonly clientId: string
  readonly name: string
  readonly redirectUris: readonly string[]
  readonly grantTypes: readonly GrantType[]
  readonly key: string | null
  readonly scope: string
  readonly createdAt: string
  readonly usedAt: string | null
}
/** Registered clients. */
export interface OAuthClientStore {
  /** A public endpoint. The oldest unused client is removed to make room; rejects with 503 when there is none. */
  register(client: NewClient): Promise<void>
  find(id: string): Promise<OAuthClient | undefined>
  /** Creates a client for the operator. `keyId` must be a live regular key. */
  create(client: NewClient & { readonly keyId: string }, actor: Actor): Promise<ClientRecord>
  /** The oldest first. */
  list(page?: Page): Promise<ClientRecord[]>
  /** Ends its grants. */
  remove(id: string, actor: Actor): Promise<ClientRecord>
}

/** A token to store. */
export interface NewToken {
  readonly hash: string
  /** Unix milliseconds. */
  readonly expiresAt: number
}
/** The tokens of one answer; without `refresh` where the client cannot have one. */
export interface NewTokens {
  readonly access: NewToken
  readonly refresh?: NewToken | undefined
}
/** A client that is registered, or one that the document at its id describes. */
interface GrantedClient {
  readonly id: string
  readonly name: string
  readonly isRegistered: boolean
}
/** A consent, and the authorization code that its client redeems. */
export interface NewGrant {
  readonly client: GrantedClient
  /** Proof of the grant: a live regular key, or a member's login code, which is consumed. */
  readonly proof: { readonly keyId: string } | { readonly loginCode: string }
  readonly scopes: readonly string[]
  readonly resource: string
  readonly code: NewToken & { readonly redirectUri: string; readonly challenge: string }
}
/** A code in a token request; `challenge` is computed from the request's verifier. */
export interface PresentedCode {
  readonly hash: string
  readonly clientId: string
  readonly redirectUri: string
  readonly challenge: string
}
/** A refresh token in a token request. */
export interface PresentedRefreshToken {
  readonly hash: string
  readonly clientId: string
  /** For the access token; undefined for all that were granted. */
  readonly scopes: readonly string[] | undefined
}
/** Grant that tokens were issued for. */
export interface Issued {
  readonly scopes: readonly string[]
}

/** A login code to make. */
export interface LoginCodeInput {
  readonly organization: string
  readonly member: string
  /** The only one that the member has access to, or `default`, where it is left out. */
  readonly project?: string | undefined
  readonly hash: string
  /** Unix milliseconds. */
  readonly expiresAt: number
}
/** Names the member and organization of a login code. */
export interface LoginCodeRecord {
  readonly member: string
  readonly organization: string
  readonly project: string
  readonly expiresAt: string
}
/** A grant as commands return it; times are ISO 8601. */
export interface GrantRecord {
  readonly id: string
  readonly client: string
  readonly clientName: string
  /** Its id. */
  readonly key: string
  /** Address of the member who made the key. */
  readonly member: string | null
  readonly scope: string
  readonly createdAt: string
  /** When tokens were last issued. */
  readonly lastUsedAt: string | null
}
/** Grants, their codes and their tokens. */
export interface OAuthGrantStore {
  /** Makes a code that signs a member in once. */
  addLoginCode(input: LoginCodeInput, actor: Actor): Promise<LoginCodeRecord>
  /** A grant and its code, all or nothing; false when the proof or the client is no longer valid. */
  begin(grant: NewGrant): Promise<boolean>
  /**
   * Takes a code and issues tokens: of many at once exactly one succeeds. A second use by its client ends the grant; what
   * another client presents changes nothing.
   */
  redeem(code: PresentedCode, tokens: NewTokens): Promise<Issued | 'invalid_grant'>
  /** Puts a new pair in the place of a refresh token. A second use of one ends the grant. */
  refresh(token: PresentedRefreshToken, tokens: NewTokens): Promise<Issued | 'invalid_grant' | 'invalid_scope'>
  /** A grant by client credentials, and its token; false when the client's key is no longer valid. */
  issue(
    client: Pick<OAuthClient, 'id' | 'name' | 'keyId'>,
    scopes: readonly string[],
    resource: string,
    access: NewToken,
  ): Promise<boolean>
  /** Ends an access token, or with a refresh token its grant. Does nothing for what is unknown, or another client's. */
  revokeToken(hash: string, clientId: string): Promise<void>
  /** Lists the grants in force, the oldest first. */
  list(
    query: Page & { readonly organization?: string | undefined; readonly key?: string | undefined },
  ): Promise<GrantRecord[]>
  revoke(id: string, actor: Actor): Promise<GrantRecord>
  /**
   * Ends grants without valid tokens, and removes rows that ended a day ago and clients unused for a month. Returns the
   * number of removed rows.
   */
  sweep(): Promise<number>
}

/** All that a store has for OAuth. */
export interface OAuthStores {
  readonly clients: OAuthClientStore
  readonly grants: OAuthGrantStore
}
