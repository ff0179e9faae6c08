/** Options of a request that shape its answer and are not part of the chat request. */
import type { Message } from '../../core/chat-request.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { Json } from '../../json/json.ts'
import { type Version, versionOf } from './version.ts'

/** A search tool of a provider, which the gateway's own search stands for. */
export interface SearchTool {
  readonly id: string
  /** The caller's name for it, which every answer uses. */
  readonly name: string
  /** The query to show when the provider reports none. */
  readonly query: string
}

/** Noted when the request is decoded, for the encoder of its answer. */
export interface ProtocolCall {
  readonly version: Version
  readonly warnings: readonly Json[]
  readonly search?: SearchTool | undefined
  /** The answer must hold a call of the search tool. */
  readonly mustSearch?: boolean
  /** The request has search tools, and the choice to use none. */
  readonly hidesSearch?: boolean
  readonly raw?: boolean
  /** Fields of the chat request that the gateway's own namespace sets. */
  readonly own?: ReadonlySet<string>
  /** The index in the call of each chat message and of each tool. */
  readonly origins?: readonly number[]
  readonly places?: readonly number[]
  /** The prompt and its messages, where these hold addresses. */
  readonly addressed?: { readonly prompt: unknown; readonly messages: readonly Message[] } | undefined
}

const calls = new WeakMap<Exchange, ProtocolCall>()

/** For `callOf`; a later note replaces the earlier one. */
export const noteCall = (ex: Exchange, call: ProtocolCall): void => void calls.set(ex, call)
/** Without warnings for a request that could not be decoded. */
export const callOf = (ex: Exchange): ProtocolCall => calls.get(ex) ?? { version: versionOf(ex), warnings: [] }
