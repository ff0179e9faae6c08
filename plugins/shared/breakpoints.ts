/** Whether a mapping accepts cache marks, and how long these may last. */
import type { ChatRequest, Mapping } from '../../src/plugin.ts'

/**
 * Breakpoints need a model with their options; the mode is the default without options. A mapping without a list of
 * parameters accepts all of its wire.
 */
export const takesBreakpoints = (request: Readonly<ChatRequest>, { parameters }: Mapping): boolean =>
  request.prompt_cache_options != null || parameters?.has('prompt_cache_options') !== false

/** Reports whether a prompt may be cached for an hour: a price that is missing is unknown, and not that of five minutes. */
export const pricesHours = ({ price }: Mapping): boolean => !price || price.rates.input_cache_write_1h !== undefined
