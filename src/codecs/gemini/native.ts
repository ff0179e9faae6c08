/** A generateContent body for providers of the same wire. */

import type { ChatRequest } from '../../core/chat-request.ts'
import { pagesOf } from '../../core/media.ts'
import type { SealCheck } from '../../core/seals.ts'
import type { NativeRequest } from '../../core/wire.ts'
import { isObject, type Json, listIn, textIn } from '../../json/json.ts'
import { Count } from '../../json/shape.ts'
import { textKey } from '../../json/text-key.ts'
import { type Carried, carried } from '../carried-reasoning.ts'
import { nativeSettings, sizeBeside } from '../native-body.ts'
import type { GenerateRequest, Part } from './schema.ts'
import { FUNCTIONS, ownTool } from './tools.ts'
import { UnansweredCalls } from './unanswered-calls.ts'

/** Name of the provider wire. */
export const WIRE = 'gemini.generate'
/** Reasoning of this wire; its providers cannot read other formats. */
const FORMAT = 'google-gemini-v1'
/** Parts that a provider's tools make, each of which answers carry in its signature. */
const HOSTED = ['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse'] as const
/** Parts that a client may also write: code holds no secret of its provider. */
const CODE: ReadonlySet<string> = new Set(['executableCode', 'codeExecutionResult'])

/** `values`: number of values in the body. Drops values not sealed for the organization. */
export function nativeOf(body: Json, seals: SealCheck | undefined, values: number, size: number): NativeRequest {
  const turns = new Turns(
    value => (seals ? seals.value(value) : value),
    block => (seals ? seals.block(block) : block),
    values,
  )
  listIn(body.contents).forEach((content, i) => {
    if (isObject(content)) turns.add(content, i)
  })
  return {
    wire: WIRE,
    body: Object.assign({}, body, { contents: turns.all() }),
    only: ownTool(body),
    pages: pagesIn(body),
    loops: loops(body),
    size,
  }
}

/** Whether the provider runs any tool: all but functions are its own. */
const loops = ({ tools }: Json): boolean =>
  listIn(tools).some(tool => isObject(tool) && Object.keys(tool).some(name => name !== FUNCTIONS && tool[name] != null))

const pagesIn = ({ tools }: Json): number =>
  listIn(tools).filter(tool => isObject(tool) && isObject(tool.urlContext)).length * pagesOf()

/** Undefined for what was not sealed here. */
type Opens<T> = (sealed: T) => T | undefined

interface NativeTurn {
  readonly role: 'user' | 'model' | 'system'
  readonly parts: Json[]
}

/**
 * Turns as they came, joined by role, completed with fields that clients may omit: roles, ids of results, and the order
 * of results.
 */
class Turns {
  readonly #open: Opens<string>
  readonly #openBlock: Opens<Readonly<Json>>
  readonly #count: Count
  readonly #turns: NativeTurn[] = []
  #calls = new UnansweredCalls()
  /** Places of the calls in the model's last turn, by id. */
  #places = new Map<string, number>()
  /** Code of that turn that has no seal yet, in order. */
  #unsealed: Json[] = []
  /** The last text and the last image of that turn. */
  #text: Json | undefined
  #image: Json | undefined

  constructor(open: Opens<string>, openBlock: Opens<Readonly<Json>>, values: number) {
    this.#open = open
    this.#openBlock = openBlock
    this.#count = new Count(values)
  }

  add({ role: given, parts }: Json, turn: number): void {
    const role = given === 'model' || given === 'system' ? given : 'user'
    const { parts: own } = this.#turn(role)
    for (const [j, part] of listIn(parts).entries()) {
      if (!isObject(part)) continue
      if (role === 'model') this.#said(part, `call_${turn}_${j}`, own)
      else own.push(this.#answered(part))
    }
  }

  all(): readonly NativeTurn[] {
    this.#order()
    return this.#turns.flatMap(({ role, parts }) => {
      const said = role === 'model' ? parts : filled(parts)
      return said.length > 0 ? [{ role, parts: said }] : []
    })
  }

  #turn(role: NativeTurn['role']): NativeTurn {
    const last = this.#turns.at(-1)
    if (last?.role === role) return last
    if (role === 'model') {
      this.#order()
      this.#calls = new UnansweredCalls()
      this.#places = new Map()
      this.#unsealed = []
      this.#text = undefined
      this.#image = undefined
    }
    const turn = { role, parts: [] }
    this.#turns.push(turn)
    return turn
  }

  /** A part of the model with its provider's signatures, each on its original part. */
  #said(part: Json, made: string, parts: Json[]): void {
    const { thoughtSignature: signature, ...plain } = part
    const kept = typeof signature === 'string' ? carried(signature, this.#count) : undefined
    const own = kept && thoughtsOf(kept, this.#open)
    const hosted = HOSTED.find(name => isObject(part[name]))
    const thoughts = own?.thoughts ?? []
    if (hosted) {
      for (const thought of thoughts) parts.push(thought)
      for (const block of kept?.native ?? []) this.#hosted(block, parts)
      if (!kept?.native?.length && CODE.has(hosted)) this.#write({ [hosted]: part[hosted] }, parts)
    } else {
      for (const block of kept?.native ?? []) this.#hosted(block, parts)
      for (const thought of thoughts) parts.push(thought)
      this.#written(plain, made, parts, kept, own?.text)
    }
    if (this.#text) sign(this.#text, own?.text)
    if (this.#image) sign(this.#image, own?.image)
  }

  /** A part beside those of tools. `text`: the signature that it carries for a text. */
  #written(plain: Json, made: string, parts: Json[], kept: Carried | undefined, text: string | undefined): void {
    if (isObject(plain.functionCall)) plain.functionCall = this.#called(plain.functionCall, made)
    // Providers accept thoughts only with their signature; an empty text only carries the signature of another part.
    if (plain.text === '' && !plain.thought) {
      if (!this.#text && text !== undefined) parts.push(signed(plain, text))
    } else if (!plain.thought && (kept || !this.#continues(plain, parts))) {
      parts.push(signed(plain, kept?.signature === undefined ? undefined : this.#open(kept.signature)))
      if (typeof plain.text === 'string') this.#text = plain
      else if (isObject(plain.inlineData)) this.#image = plain
    }
  }

  /** Code as the client writes it. A later part may carry its seal. */
  #write(code: Json, parts: Json[]): void {
    parts.push(code)
    this.#unsealed.push(code)
  }

  /** A sealed part, in the place of the same code without a seal. */
  #hosted(block: Json, parts: Json[]): void {
    const whole = this.#openBlock(block)
    if (!whole) return
    const [first] = this.#unsealed
    const isSame =
      first && Object.keys(first).every(name => JSON.stringify(first[name]) === JSON.stringify(whole[name]))
    if (!isSame) parts.push(whole)
    else Object.assign(this.#unsealed.shift()!, whole)
  }

  /** Appends a piece of a stream to the text before it: the signature covers the whole text. */
  #continues(part: Json, parts: readonly Json[]): boolean {
    const text = this.#text
    if (!text || text !== parts.at(-1) || !isPiece(text) || !isPiece(part)) return false
    text.text = `${text.text}${part.text}`
    return true
  }

  #called(call: Json, made: string): Json {
    const id = textIn(call.id) ?? made
    this.#calls.add(id, String(call.name))
    this.#places.set(textKey(id), this.#places.size)
    return call.id === id ? call : Object.assign({}, call, { id })
  }

  #answered(part: Json): Json {
    const { functionResponse: response } = part
    if (!isObject(response)) return part
    const given = textIn(response.id)
    if (given && this.#calls.isRepeated(given)) return part
    const id = this.#calls.answer(given, textIn(response.name))
    return id === response.id
      ? part
      : Object.assign({}, part, { functionResponse: Object.assign({}, response, { id }) })
  }

  /** Sorts results by their calls, before other user content. */
  #order(): void {
    const { role, parts } = this.#turns.at(-1) ?? {}
    if (role !== 'user' || this.#places.size === 0) return
    const placeOf = ({ functionResponse: response }: Json) =>
      isObject(response)
        ? (this.#places.get(textKey(String(response.id))) ?? this.#places.size)
        : Number.POSITIVE_INFINITY
    parts!.sort((a, b) => (placeOf(a) === placeOf(b) ? 0 : placeOf(a) - placeOf(b)))
  }
}

/** A turn without empty texts, which the wire refuses; one of nothing else is filled. */
function filled(parts: Json[]): Json[] {
  if (!parts.some(isEmpty)) return parts
  const said = parts.filter(part => !isEmpty(part))
  return said.length > 0 ? said : [{ text: '.' }]
}

const isEmpty = (part: Json): boolean => part.text === '' && Object.keys(part).length === 1

/** Whether a part is only text. */
const isPiece = (part: Json): boolean => typeof part.text === 'string' && Object.keys(part).length === 1

const signed = (part: Json, signature: string | undefined): Json =>
  signature === undefined ? part : Object.assign(part, { thoughtSignature: signature })

function sign(part: Json, signature: string | undefined): void {
  if (signature !== undefined && textIn(part.thoughtSignature) === undefined) signed(part, signature)
}

/** Signed thoughts, and the signatures of the text and the image before the carrying part. */
function thoughtsOf({ details = [] }: Carried, openValue: (value: string) => string | undefined) {
  const open = (value: string | null | undefined) => (value == null ? undefined : openValue(value))
  const thoughts: Json[] = []
  let text: string | undefined
  let image: string | undefined
  for (const detail of details) {
    if (detail.format !== FORMAT) continue
    const signature = open(detail.signature)
    image = open(detail.data) ?? image
    if (signature === undefined) continue
    if (detail.text) thoughts.push({ text: detail.text, thought: true, thoughtSignature: signature })
    else text = signature
  }
  return { thoughts, text, image }
}

/** Sealed fields of the model's parts. Seals are counted elsewhere; a part with nothing else is not sent. */
const SEALED = ['thought', 'thoughtSignature', 'toolCall', 'toolResponse']
const reads = (name: keyof Part, more: readonly string[] = []): ReadonlySet<string> => new Set([name, ...more])
const SAID = (['functionCall', 'inlineData', 'fileData', 'text'] as const).map(
  name => [name, reads(name, SEALED)] as const,
)
const GIVEN = (['functionResponse', 'inlineData', 'fileData', 'text'] as const).map(
  name => [name, reads(name)] as const,
)
const TEXT = [['text', reads('text')]] as const

/** `body` is in camelCase, and `request` is its chat form. */
export function nativeSize(
  { contents, systemInstruction, tools, generationConfig }: GenerateRequest,
  request: ChatRequest,
) {
  const { responseSchema, responseJsonSchema } = generationConfig ?? {}
  let sum = nativeSettings([tools, responseSchema, responseJsonSchema], request)
  if (typeof systemInstruction === 'object') sum += inParts(systemInstruction?.parts, TEXT)
  for (const { role, parts } of contents) sum += inParts(parts, role === 'model' ? SAID : GIVEN)
  return sum
}

/** A chat request has one member of each part, the first of these. */
function inParts(parts: readonly Part[] | null = [], members: readonly (readonly [keyof Part, ReadonlySet<string>])[]) {
  let sum = 0
  for (const part of parts ?? []) {
    const [, read] = members.find(([name]) => part[name] != null) ?? members.at(-1)!
    sum += sizeBeside(part, read)
  }
  return sum
}
