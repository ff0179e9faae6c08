/** The error object of the OpenAI-compatible endpoints, interface 2.1. */
import type { GatewayError } from '../core/error.ts'

export const openAiError = ({ message, type, param, code }: GatewayError) => ({ error: { message, type, param, code } })
