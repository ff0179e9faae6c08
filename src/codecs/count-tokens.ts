/** Client wire of `POST /v1/messages/count_tokens`: a Messages body whose prompt is counted. */
import type { Codec } from '../core/codec.ts'
import type { TokenCount } from '../core/translator.ts'
import { isObject } from '../json/json.ts'
import { anthropicMessages } from './anthropic-messages.ts'
import { WholeEncoder } from './whole.ts'

/** Answers `{ input_tokens }`. */
export const countTokens = {
  wire: anthropicMessages.wire,
  exact: anthropicMessages.exact,
  // Fields about the answer are neither required nor sent.
  decode: (body, ex) =>
    anthropicMessages.decode(isObject(body) ? Object.assign({}, body, { max_tokens: 1, stream: false }) : body, ex),
  encoder: ex => new WholeEncoder<TokenCount>(ex, ({ tokens }) => ({ input_tokens: tokens })),
  idHeader: anthropicMessages.idHeader,
  error: anthropicMessages.error,
  prepare: anthropicMessages.prepare,
} satisfies Codec<'chat'>
