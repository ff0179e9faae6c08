/** Answers that are to be any JSON object. */
import { type ChatRequest, textOf } from '../../src/plugin.ts'

/** The instruction for models that no format tells. */
export const ANY_JSON = 'Respond with one JSON object and nothing else.'

/** Whether the instruction is missing on wires that refuse the format without the word (R16). */
export const lacksWord = ({ response_format: format, messages }: Readonly<ChatRequest>): boolean =>
  format?.type === 'json_object' && !messages.some(({ content }) => /json/i.test(textOf(content)))
