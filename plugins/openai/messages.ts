/** Messages as providers of this wire accept them: OpenAI's fields only. */
import {
  type ContentPart,
  dataHeadOf,
  isObject,
  type Json,
  type Message,
  parseFile,
  type Target,
  type ToolCall,
  typeOfBase64,
  unseal,
} from '../../src/plugin.ts'
import { hashedCallId } from '../shared/call-count.ts'
import { parsedSeal, replayDetails } from '../shared/chat-completions/reasoning-details.ts'
import { shortName } from '../shared/tool-name.ts'

/**
 * `breakpoints` keeps `prompt_cache_breakpoint` on parts. The order of fields is fixed, so that a cached prefix stays
 * the same text.
 */
export function encodeMessage(message: Message, target: Target, breakpoints: boolean): Json {
  const { tool_calls: calls, tool_call_id: id } = message
  const calling = calls != null && calls.length > 0
  const out: Json = {
    // Every provider of this wire accepts system; few accept developer (R6).
    role: message.role === 'developer' ? 'system' : message.role,
    content: contentOf(message, breakpoints) ?? (calling ? null : ''),
  }
  if (message.name !== undefined) out.name = message.name
  if (message.refusal != null) out.refusal = message.refusal
  if (id !== undefined) out.tool_call_id = shortId(id)
  if (calling) {
    out.tool_calls = calls.map(call => encodeCall(call, target))
  }
  if (message.role === 'assistant') addReasoning(out, message, target, calling)
  return out
}

/** OpenAI's longest id of a call; other providers make longer ones. */
const MAX_CALL_ID_CHARACTERS = 40
const shortId = (id: string): string => (id.length <= MAX_CALL_ID_CHARACTERS ? id : hashedCallId(id))

function encodeCall(call: ToolCall, target: Target): Json {
  const { type } = call
  const id = shortId(call.id)
  if (type === 'custom') return { id, type, custom: { name: shortName(call.custom.name), input: call.custom.input } }
  const extra = parsedSeal(unseal(target, call.extra_content?.vendor?.thought_signature))?.extra_content
  // Providers that parse earlier arguments fail on an empty string.
  const sent: Json = {
    id,
    type,
    function: { name: shortName(call.function.name), arguments: call.function.arguments || '{}' },
  }
  if (isObject(extra)) sent.extra_content = extra
  return sent
}

/** C8: only user messages have non-text parts, and several providers accept other messages as strings only. */
function contentOf({ role, content }: Message, breakpoints: boolean): string | Json[] | null | undefined {
  if (!Array.isArray(content)) return content
  const words = role === 'user' ? [] : content.flatMap(part => (breakpoints && marked(part) ? [] : wordsOf(part)))
  const isPlain = role !== 'user' && words.length === content.length
  return isPlain ? words.join('') : content.map(part => encodePart(part, breakpoints))
}

const wordsOf = (part: ContentPart): string[] =>
  part.type === 'text' ? [part.text] : part.type === 'refusal' ? [part.refusal] : []

const marked = (part: ContentPart) => 'prompt_cache_breakpoint' in part && part.prompt_cache_breakpoint !== undefined

function encodePart(part: ContentPart, breakpoints: boolean): Json {
  const out = bare(part)
  if (breakpoints && 'prompt_cache_breakpoint' in part && part.prompt_cache_breakpoint) {
    out.prompt_cache_breakpoint = part.prompt_cache_breakpoint
  }
  return out
}

function bare(part: ContentPart): Json {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image_url': {
      const { url, detail } = part.image_url
      return { type: 'image_url', image_url: detail === undefined ? { url } : { url, detail } }
    }
    case 'input_audio':
      return { type: 'input_audio', input_audio: audioOf(part.input_audio) }
    case 'file':
      return { type: 'file', file: fileOf(part.file) }
    case 'refusal':
      return { type: 'refusal', refusal: part.refusal }
  }
}

/** Its known fields: a provider may read an address in another one. */
function fileOf({ filename, file_data: data, file_id: id }: FilePart['file']): Json {
  const file: Json = {}
  if (filename !== undefined) file.filename = filename
  if (data !== undefined) file.file_data = sentUrl(data, filename)
  if (id !== undefined) file.file_id = id
  return file
}

type FilePart = Extract<ContentPart, { type: 'file' }>
type AudioPart = Extract<ContentPart, { type: 'input_audio' }>

function audioOf({ data, format }: AudioPart['input_audio']): Json {
  return { data: dataHeadOf(data)?.isBase64 === false ? plainUrl(data) : data, format }
}

/** As it came where its URL says what is held for: base64, of the type that its bytes prove. */
function sentUrl(url: string, name: string | undefined): string {
  const head = dataHeadOf(url)
  if (!head) return url
  const type = typeOfBase64(url.slice(head.at), head.mime, name)
  return head.isBase64 && url.startsWith(`${type};`, SCHEME.length) ? url : plainUrl(url, name)
}
const SCHEME = 'data:'

/** In base64: of other forms, providers may make other bytes. */
function plainUrl(url: string, name?: string): string {
  const file = parseFile(url, name)
  return file ? `${SCHEME}${file.mime};base64,${file.base64}` : url
}

/** Earlier reasoning is sent only in the field that the provider names; most reject it, or must not see it. */
function addReasoning(out: Json, message: Message, target: Target, calling: boolean): void {
  switch (target.provider.reasoningReplay) {
    case 'reasoning': {
      const text = message.reasoning ?? message.reasoning_content ?? ''
      if (text !== '') out.reasoning = text
      break
    }
    case 'reasoning_content': {
      const text = message.reasoning_content ?? message.reasoning ?? ''
      // Such a provider rejects a turn with tool calls without the field, so it may be empty.
      if (text !== '' || calling) out.reasoning_content = text
      break
    }
    case 'reasoning_details': {
      const entries = replayDetails(message.reasoning_details, target)
      if (entries.length > 0) out.reasoning_details = entries
      break
    }
  }
}
