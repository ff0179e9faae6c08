/** Tells copies of requests from requests of clients (docs/rules.md#mirrors). */
import type { Exchange } from '../core/exchange.ts'

const copies = new WeakSet<Exchange>()

/** Marks an exchange as the copy of another one. */
export const markCopy = (ex: Exchange): void => void copies.add(ex)

/** Whether no client waits for the answer: the operator pays, and no limit of a tenant counts it. */
export const isCopy = (ex: Exchange): boolean => copies.has(ex)
