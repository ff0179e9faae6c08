/** Whether a model of OpenAI's takes marks of where a prompt may be cached, on either of its wires. */
import type { ChatRequest, Mapping } from '../../src/plugin.ts'

/**
 * Breakpoints are for models that take the options for them; without options the mode is the usual one. A mapping that
 * lists no parameters takes all of its wire.
 */
export const takesBreakpoints = (request: Readonly<ChatRequest>, { parameters }: Mapping): boolean =>
  request.prompt_cache_options != null || parameters?.has('prompt_cache_options') !== false
