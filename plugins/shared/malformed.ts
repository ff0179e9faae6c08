/** Answers that a model has spoilt by what it wrote last. */
import { billed, type GatewayError } from '../../src/plugin.ts'

/** Tokens of an answer that is given up for nothing. */
const MAX_FREE = 4096

/**
 * The failure of an answer that ends by mistake, such as with a call that cannot be read. Another provider may do better,
 * and the operator pays for this one; but not for a long one, `written` tokens of it, which the caller may have had written
 * to no other end.
 */
export const malformed = (error: GatewayError, written = 0): GatewayError =>
  written > MAX_FREE ? billed(error) : error
