/** Whether a model of OpenAI's accepts cache marks, on either of its wires. */
import type { ChatRequest, Mapping } from '../../src/plugin.ts'

/**
 * Breakpoints need a model with their options; the mode is the default without options. A mapping without a list of
 * parameters accepts all of its wire.
 */
export const takesBreakpoints = (request: Readonly<ChatRequest>, { parameters }: Mapping): boolean =>
  request.prompt_cache_options != null || parameters?.has('prompt_cache_options') !== false
