/** Prompts that are too long: agents shorten their history where they recognize the words of their own provider. */
import { errorBody, type GatewayError } from '../lib/error.ts'

/** Whether a prompt has more tokens than the model takes. */
export const isOverflow = ({ code }: GatewayError): boolean => code === 'context_length_exceeded'

/**
 * The message of an error. For an overflow it contains `words`, by which clients recognize one, or begins with both texts.
 */
export const recognizable = (error: GatewayError, words: string, more = ''): string =>
  !isOverflow(error) || error.message.toLowerCase().includes(words)
    ? error.message
    : `${words}${more}: ${error.message}`

/** The error on OpenAI's wires. LiteLLM, and agents that use it, look for these words and not for the code. */
export const openAiError = (error: GatewayError) =>
  errorBody(error.with({ message: recognizable(error, "this model's maximum context length is", ' exceeded') }))
