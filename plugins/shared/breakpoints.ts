/** Whether a mapping accepts cache marks, and how long these may last. */
import type { ChatRequest, Mapping } from '../../src/plugin.ts'

/**
 * Breakpoints need a model with their options; the mode is the default without options. A mapping without a list of
 * parameters accepts all of its wire.
 */
export const takesBreakpoints = (request: Readonly<ChatRequest>, { parameters }: Mapping): boolean =>
  request.prompt_cache_options != null || parameters?.has('prompt_cache_options') !== false

/**
 * Reports whether a prompt may be cached for an hour. Where only five minutes have a price, that of an hour is unknown; a
 * mapping without either charges cached tokens as plain ones.
 */
export const pricesHours = ({ price }: Mapping): boolean =>
  price?.rates.input_cache_write === undefined || price.rates.input_cache_write_1h !== undefined
