/** The contents of a generateContent body as chat messages. */

import type { ContentPart, Message, ToolCall } from '../../core/chat-request.ts'
import { isLongNumber } from '../../json/lossless.ts'
import type { Count } from '../../json/shape.ts'
import { errors } from '../../lib/error.ts'
import { plainBase64 } from '../../wire/wire.ts'
import { carried, restore } from '../carried-reasoning.ts'
import { audioFormatOf, audioSubtypes, compact } from '../chat-parts.ts'
import { ToolJson } from '../tool-json.ts'
import { assertImageUrl, assertOneSource } from '../url.ts'
import type { Content, GenerateRequest, Part } from './schema.ts'
import { UnansweredCalls } from './unanswered-calls.ts'

/** The system instruction as messages; empty without one. */
export function systemOf(system: GenerateRequest['systemInstruction']): Message[] {
  const parts = typeof system === 'string' ? [{ text: system }] : (system?.parts ?? [])
  const text = parts.flatMap(part => (part.text ? [part.text] : [])).join('\n\n')
  return text === '' ? [] : [{ role: 'system', content: text }]
}

/** Turns of one role may arrive in pieces: clients keep the chunks of a stream. */
export function historyOf(contents: readonly Content[], count: Count): Message[] {
  const history = new History(count)
  contents.forEach(({ role, parts }, i) => {
    const at = `contents[${i}].parts`
    if (role === 'model') history.model(parts ?? [], i)
    else history.user(parts ?? [], at, role === 'system' ? 'system' : 'user')
  })
  return history.messages()
}

class History {
  readonly #count: Count
  readonly #messages: Message[] = []
  /** The model's current turn and its text. */
  #turn: Message | undefined
  #said: ContentPart[] = []
  #calls = new UnansweredCalls()
  readonly #json = new ToolJson()

  constructor(count: Count) {
    this.#count = count
  }

  /** Omits empty turns. */
  messages(): Message[] {
    this.#close()
    return this.#messages.filter(
      ({ role, content, tool_calls: calls, provider_native_blocks: blocks }) =>
        role !== 'assistant' || calls || blocks || (content !== '' && content !== null),
    )
  }

  model(parts: readonly Part[], turn: number): void {
    const message = this.#turn ?? this.#begin()
    let thoughts = ''
    for (const [j, part] of parts.entries()) {
      const { thought, thoughtSignature: signature, functionCall: called } = part
      const at = `contents[${turn}].parts[${j}]`
      const kept = signature ? carried(signature, this.#count) : undefined
      if (kept) restore(message, kept)
      if (called) {
        assertOneThing(part, at)
        message.tool_calls ??= []
        if (message.tool_calls.length === 0 && this.#said.length > 0) message.content_before_tool_calls = true
        message.tool_calls.push(this.#call(called, turn, j, kept?.signature))
      } else if (thought) {
        // Its file is not read, but is sent to providers of this wire.
        if (part.fileData) partOf(part, at)
        thoughts += part.text ?? ''
      } else {
        const own = partOf(part, at)
        if (own) say(this.#said, own)
      }
    }
    // A thought with its signature is already recorded.
    if (message.reasoning === undefined && thoughts !== '') message.reasoning = thoughts
  }

  /** User content beside results follows them: other wires allow nothing between calls and results. */
  user(parts: readonly Part[], at: string, role: 'user' | 'system'): void {
    this.#close()
    const own: ContentPart[] = []
    for (const [j, part] of parts.entries()) {
      if (part.functionResponse) {
        assertOneThing(part, `${at}[${j}]`)
        const { id } = part.functionResponse
        // A session that Gemini CLI resumes has the results of a turn twice.
        if (id && this.#calls.isRepeated(id)) continue
        this.#messages.push(this.#result(part.functionResponse, `${at}[${j}].functionResponse`))
      } else {
        const said = partOf(part, `${at}[${j}]`)
        if (said) own.push(said)
      }
    }
    // A text without words is a message all the same, as a chat client's is.
    if (own.length > 0 || parts.some(isEmpty)) this.#messages.push({ role, content: compact(own) })
  }

  #begin(): Message {
    const message: Message = { role: 'assistant', content: '' }
    this.#messages.push(message)
    this.#turn = message
    this.#said = []
    this.#calls = new UnansweredCalls()
    return message
  }

  #close(): void {
    const message = this.#turn
    if (!message) return
    this.#turn = undefined
    message.content = this.#said.length === 0 && message.tool_calls ? null : compact(this.#said)
  }

  #call(
    { id, name, args }: NonNullable<Part['functionCall']>,
    turn: number,
    part: number,
    signature: string | undefined,
  ): ToolCall {
    const text = this.#json.argumentsOf(args ?? {}, `contents[${turn}].parts[${part}].functionCall.args`)
    const call: ToolCall = { id: id || `call_${turn}_${part}`, type: 'function', function: { name, arguments: text } }
    if (signature !== undefined) call.extra_content = { vendor: { thought_signature: signature } }
    this.#calls.add(call.id, name)
    return call
  }

  /** Throws a 400 for a result without a call. */
  #result({ id, name, response, parts }: NonNullable<Part['functionResponse']>, at: string): Message {
    const called = this.#calls.answer(id ?? undefined, name ?? undefined)
    if (called === undefined) {
      const given = id ? `the id "${id.slice(0, 100)}"` : `the name "${(name ?? '').slice(0, 100)}"`
      throw errors.invalidField(at, `no call of the turn before it without a response has ${given}`)
    }
    const { text, failed } = said(response ?? {}, `${at}.response`, this.#json)
    const media = (parts ?? []).flatMap((part, k) => partOf(part, `${at}.parts[${k}]`) ?? [])
    const content: ContentPart[] | string = media.length === 0 ? text : [{ type: 'text', text }, ...media]
    const message: Message = { role: 'tool', tool_call_id: called, content }
    if (failed) message.is_error = true
    return message
  }
}

const isEmpty = (part: Part): boolean => part.text === '' && Object.keys(part).length === 1

/** Joins adjacent texts: the pieces of a stream. */
function say(parts: ContentPart[], part: ContentPart): void {
  const last = parts.at(-1)
  if (part.type === 'text' && last?.type === 'text') last.text += part.text
  else parts.push(part)
}

const WORDS: ReadonlySet<string> = new Set(['output', 'result', 'error'])

/** A response with only a text output or error becomes that text; any other is JSON, as is one with a long number. */
function said(response: object, at: string, json: ToolJson): { text: string; failed: boolean } {
  const [first, second] = Object.entries(response)
  const [name, value] = first ?? []
  const isWords = second === undefined && typeof value === 'string' && !isLongNumber(value)
  if (isWords && name && WORDS.has(name)) return { text: value, failed: name === 'error' }
  return { text: json.resultOf(response, at), failed: false }
}

const THINGS = ['functionCall', 'functionResponse', 'inlineData', 'fileData']

type Blob = NonNullable<Part['inlineData']>
type File = NonNullable<Part['fileData']>

/** Throws a 400 for a part of which only one thing would be read. */
const assertOneThing = (part: Part, at: string): void => assertOneSource(part, at, THINGS)

/** `at`: path of the part. Undefined for parts that only their own provider can read. */
export function partOf(part: Part, at: string): ContentPart | undefined {
  assertOneThing(part, at)
  if (part.inlineData) return blobPart(part.inlineData, `${at}.inlineData`)
  if (part.fileData) return filePart(part.fileData, `${at}.fileData`)
  return part.text ? { type: 'text', text: part.text } : undefined
}

/** Clients use either alphabet of RFC 4648. */
const standard = (data: string): string => (data.includes('-') || data.includes('_') ? plainBase64(data) : data)

function blobPart({ mimeType, data }: Blob, at: string): ContentPart {
  const mime = mimeType.toLowerCase()
  const base64 = standard(data)
  if (mime.startsWith('image/')) {
    const url = `data:${mime};base64,${base64}`
    assertImageUrl(url, at)
    return { type: 'image_url', image_url: { url } }
  }
  if (mime.startsWith('audio/')) {
    const format = audioFormatOf(mime)
    if (format) return { type: 'input_audio', input_audio: { data: base64, format } }
    throw errors.invalidField(`${at}.mimeType`, `must be one of ${audioTypes}`)
  }
  return { type: 'file', file: { filename: nameOf(mime), file_data: `data:${mime};base64,${base64}` } }
}

const audioTypes = audioSubtypes.map(name => `"audio/${name}"`).join(', ')
const nameOf = (mime: string): string => (mime === 'application/pdf' ? 'document.pdf' : 'file')

/** Addresses of files stored at the provider, or public ones. */
const HELD = /^(?:gs:\/\/|files\/|https:\/\/(?:generativelanguage\.googleapis\.com|(?:www\.)?youtube\.com|youtu\.be)\/)/

function filePart({ mimeType, fileUri }: File, at: string): ContentPart {
  if (HELD.test(fileUri)) return { type: 'file', file: { file_id: fileUri } }
  assertImageUrl(fileUri, `${at}.fileUri`)
  const mime = mimeType?.toLowerCase() ?? ''
  if (mime.startsWith('image/')) return { type: 'image_url', image_url: { url: fileUri } }
  const format = audioFormatOf(mime)
  if (format) return { type: 'input_audio', input_audio: { data: fileUri, format } }
  return { type: 'file', file: { filename: nameOf(mime), file_data: fileUri } }
}
