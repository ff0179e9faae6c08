/** What a scripted step answers, before a wire gives it its form. The same request always gets the same answer. */
import { createHash } from 'node:crypto'

/**
 * @typedef {object} Asked what a wire reads of a request
 * @property {string} model
 * @property {number} n
 * @property {string} text of the last user message
 * @property {number} characters of all messages
 * @property {string | null} tool name of the first offered tool
 * @property {string | null} toolResult text of the last message when that is a tool result
 *
 * @typedef {object} Answer
 * @property {number} id
 * @property {string} model
 * @property {number} n
 * @property {string[]} reasoning
 * @property {string[]} text
 * @property {string[]} refusal in words, which not every wire has
 * @property {{ name: string, custom: boolean, pieces: string[] }[]} toolCalls `custom` ones have any text as input
 * @property {string | null} finish in the words of the OpenAI wire
 * @property {number} chunks how many pieces the answer has, over all choices
 * @property {Usage} meter what the answer consumes
 * @property {Usage | null} usage what it claims to consume
 *
 * @typedef {{ prompt: number, completion: number, cached: number, written: number, written1h: number,
 *   reasoning: number }} Usage `prompt` includes `cached` and `written`, `written` includes `written1h`
 */

/**
 * @param {number} id
 * @param {object} step
 * @param {Asked} asked
 * @returns {Answer}
 */
export function compose(id, step, asked) {
  const toolCalls = callsOf(step, asked).map(({ name, input, args = {} }) => ({
    name,
    custom: input !== undefined,
    pieces: split(input ?? (typeof args === 'string' ? args : JSON.stringify(args)), 2),
  }))
  const reasoning = listOf(step.reasoning)
  const refusal = listOf(step.refusal)
  const text = step.chunks ?? listOf(step.text ?? (toolCalls.length + refusal.length > 0 ? '' : echo(asked)))
  const pieces =
    reasoning.length + text.length + refusal.length + toolCalls.reduce((sum, call) => sum + call.pieces.length, 0)
  const chunks = pieces * asked.n
  const meter = {
    prompt: Math.ceil(asked.characters / 4),
    completion: chunks,
    cached: 0,
    written: 0,
    written1h: 0,
    reasoning: reasoning.length * asked.n,
    ...step.usage,
  }
  return {
    id,
    model: asked.model,
    n: asked.n,
    reasoning,
    text,
    refusal,
    toolCalls,
    finish: step.finish === undefined ? (toolCalls.length > 0 ? 'tool_calls' : 'stop') : step.finish,
    chunks,
    meter,
    usage: step.usage === null ? null : meter,
  }
}

const echo = asked => (asked.toolResult === null ? `echo: ${asked.text}` : `tool said: ${asked.toolResult}`)

function callsOf(step, asked) {
  if (step.toolCalls !== 'offered') return step.toolCalls ?? []
  return asked.tool === null || asked.toolResult !== null ? [] : [{ name: asked.tool }]
}

const listOf = value => (Array.isArray(value) ? value : split(value ?? '', 4))

/** Cuts `text` into at most `count` pieces of nearly equal length, never inside a character. */
export function split(text, count) {
  const characters = Array.from(text)
  const at = i => Math.floor((i * characters.length) / count)
  return Array.from({ length: count }, (_, i) => characters.slice(at(i), at(i + 1)).join('')).filter(Boolean)
}

/** The signature that this upstream gives to reasoning text, and later asks back. */
export const signatureOf = thinking => createHash('sha256').update(`signed:${thinking}`).digest('base64')

/** The text of a message's content: its string, or its text parts joined. */
export const textOf = content =>
  typeof content === 'string'
    ? content
    : (content ?? [])
        .filter(part => part.type === 'text')
        .map(part => part.text)
        .join('')
