/** The catalogue in the client's form: OpenAI's, that of the Messages wire, or Google's. */
import type { Codec } from '../core/codec.ts'
import type { Exchange } from '../core/exchange.ts'
import type { CatalogEntry } from './catalog-entry.ts'
import { credentials, isGeminiClient } from './gemini/credentials.ts'
import { geminiError } from './gemini/error.ts'
import { modelInfo as geminiModel, modelPage as geminiPage } from './gemini/model-list.ts'
import { json } from './json.ts'
import { messagesError } from './messages/error.ts'
import { isMessagesClient, modelInfo as messagesModel, modelPage as messagesPage } from './messages/model-list.ts'
import { ID_HEADER } from './messages/sink.ts'

/** Errors in the client's form. */
export const modelForms: Codec<never> = {
  ...json,
  credentials,
  idHeader: headers => (isMessagesClient(headers) ? ID_HEADER : undefined),
  error: (error, headers = {}) => {
    if (isGeminiClient(headers)) return geminiError(error)
    return isMessagesClient(headers) ? messagesError(error) : json.error(error)
  },
}

/** Lists models on paths that only Google's API has. */
export const geminiModels: Codec<never> = { ...json, credentials, error: geminiError }

type Asked = Pick<Exchange, 'endpoint' | 'http'>

const isGemini = ({ endpoint, http }: Asked): boolean => endpoint.codec === geminiModels || isGeminiClient(http.headers)

/**
 * The page of `listing`, the catalogue as JSON, that `query` requests; undefined when the client reads the
 * listing unchanged.
 */
export function pageOf(ex: Asked, listing: Buffer, query: URLSearchParams, today: string): object | undefined {
  if (isGemini(ex)) return geminiPage(listing, query)
  return isMessagesClient(ex.http.headers) ? messagesPage(listing, query, today) : undefined
}

/** One entry of the catalogue, in the client's form; `today` is a date such as `2026-01-31`. */
export function entryIn(ex: Asked, entry: CatalogEntry, today: string): object {
  if (isGemini(ex)) return geminiModel(entry)
  return isMessagesClient(ex.http.headers) ? messagesModel(entry, today) : entry
}
