/** Answers that a model has spoilt by what it wrote last. */
import { billed, type GatewayError, type Usage } from '../../src/plugin.ts'

/** Tokens that are given up for nothing: of an answer, and of it with its prompt, whose tokens cost a fraction of that. */
const MAX_FREE = { written: 4096, all: 32_768 }

/**
 * The failure of an answer that ends by mistake, such as with a call that cannot be read. Another provider may do better,
 * and the operator pays for this one; but not where it has cost much by the `usage` that is reported, which the caller may
 * have caused to no other end.
 */
export const malformed = (error: GatewayError, { prompt = 0, completion = 0 }: Usage = {}): GatewayError =>
  completion > MAX_FREE.written || prompt + completion > MAX_FREE.all ? billed(error) : error
