/** Rules between fields of a chat request, for every client wire. */

import type { ChatRequest, ContentPart, Message } from '../core/chat-request.ts'
import { errors } from '../lib/error.ts'
import { isAddress } from '../lib/url.ts'
import { assertFile, assertImageUrl, assertOneSource } from './url.ts'

/** Images, files and audio of a request that stand at addresses: to look at many thousands takes long. */
const MAX_ADDRESSES = 1_000
const MAX_STOPS = 256
const MAX_STOP_CHARACTERS = 4096
const FILE_SOURCES = ['file_data', 'file_id']

/** Throws the documented 400 for the first broken rule. */
export function checkChat(request: ChatRequest): void {
  const { messages } = request
  const tools = request.tools ?? []
  const types = new Set(tools.map(tool => tool.type))
  if (request.reasoning && request.reasoning_effort) {
    throw errors.combination('reasoning cannot be combined with reasoning_effort; use one of them.', 'reasoning_effort')
  }
  if ((request.n ?? 1) > 1 && request.stream && types.has('function')) {
    throw errors.combination('n > 1 cannot be combined with stream and function tools.', 'n')
  }
  if (
    typeof request.tool_choice === 'object' &&
    request.tool_choice?.type === 'web_search' &&
    !types.has('web_search')
  ) {
    throw errors.invalidField('tool_choice', 'web_search requires a web_search tool in tools')
  }
  for (const [index, tool] of tools.entries()) {
    if (tool.type === 'function' && tool.defer_loading && !types.has('tool_search')) {
      const param = `tools[${index}].defer_loading`
      throw errors.invalidField(param, 'requires a tool_search tool in tools')
    }
  }
  checkStops(request.stop ?? [])
  let addresses = 0
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`
    if (message.role === 'tool' && !message.tool_call_id) {
      throw errors.invalidField(`${at}.tool_call_id`, 'is required for role "tool"')
    }
    if (!Array.isArray(message.content)) continue
    for (const [position, part] of message.content.entries()) {
      const where = `${at}.content[${position}]`
      if (isRemote(part) && ++addresses > MAX_ADDRESSES) {
        throw errors.invalidField(where, `a request may have at most ${MAX_ADDRESSES} media addresses`)
      }
      if (part.type === 'image_url') assertImageUrl(part.image_url.url, `${where}.image_url.url`)
      else if (part.type === 'file') {
        assertOneSource(part.file, `${where}.file`, FILE_SOURCES)
        assertFile(part.file.file_data ?? '', `${where}.file.file_data`)
      } else if (part.type === 'input_audio') assertFile(part.input_audio.data, `${where}.input_audio.data`)
    }
  }
}

/** Throws a 400 for stop sequences that take long to look for. */
function checkStops(stop: readonly string[]): void {
  const characters = stop.reduce((sum, { length }) => sum + length, 0)
  if (stop.length <= MAX_STOPS && characters <= MAX_STOP_CHARACTERS) return
  const rule = `must be at most ${MAX_STOPS} texts with ${MAX_STOP_CHARACTERS} characters in total`
  throw errors.invalidField('stop', rule)
}

/** Whether any media of a message stands at an address. */
export const hasAddress = ({ content }: Message): boolean => Array.isArray(content) && content.some(isRemote)

/** Whether its content stands at an address. */
function isRemote(part: ContentPart): boolean {
  if (part.type === 'image_url') return isAddress(part.image_url.url)
  if (part.type === 'file') return isAddress(part.file.file_data ?? '')
  return part.type === 'input_audio' && isAddress(part.input_audio.data)
}
