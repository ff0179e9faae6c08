/** Content parts of a chat message as the wire's input and output parts. */
import {
  type ContentPart,
  errors,
  isText,
  type Json,
  type Message,
  parseDataUrl,
  parseFile,
  sniffImage,
  textOf,
  wellFormed,
} from '../../src/plugin.ts'

/**
 * Content of a user, system or tool message: a string when it is only text, else parts. Undefined when empty. `at`: the
 * message's path, for errors; `breakpoints` keeps `prompt_cache_breakpoint` on parts.
 */
export function inputOf(content: Message['content'], at: string, breakpoints: boolean): string | Json[] | undefined {
  if (!Array.isArray(content)) return content ? wellFormed(content) : undefined
  const isPlain = (part: ContentPart) => part.type === 'text' && !(breakpoints && part.prompt_cache_breakpoint)
  if (content.every(isPlain)) return wellFormed(textOf(content)) || undefined
  const parts: Json[] = []
  for (const [i, part] of content.entries()) {
    const input = inputPart(part, `${at}.content[${i}]`)
    if (!input) continue
    const breakpoint = breakpoints && 'prompt_cache_breakpoint' in part ? part.prompt_cache_breakpoint : undefined
    parts.push(breakpoint ? { ...input, prompt_cache_breakpoint: breakpoint } : input)
  }
  return parts.length > 0 ? parts : undefined
}

/** Assistant content: text or a refusal. */
export function outputOf(content: Message['content'], refusal: string | null | undefined, at: string): Json[] {
  const parts: Json[] = []
  if (typeof content === 'string') append(parts, outputText(content))
  else {
    for (const [i, part] of content?.entries() ?? []) {
      if (part.type === 'text') append(parts, outputText(part.text))
      else if (part.type === 'refusal') append(parts, outputRefusal(part.refusal))
      else throw errors.unsupported('An assistant message may hold text only.', `${at}.content[${i}]`)
    }
  }
  if (refusal) append(parts, outputRefusal(refusal))
  return parts
}

const outputText = (text: string): Json | undefined =>
  text === '' ? undefined : { type: 'output_text', text: wellFormed(text), annotations: [] }

const outputRefusal = (refusal: string): Json | undefined =>
  refusal === '' ? undefined : { type: 'refusal', refusal: wellFormed(refusal) }

function append(parts: Json[], part: Json | undefined): void {
  if (part) parts.push(part)
}

function inputPart(part: ContentPart, at: string): Json | undefined {
  switch (part.type) {
    case 'text':
      return part.text === '' ? undefined : { type: 'input_text', text: wellFormed(part.text) }
    case 'refusal':
      return part.refusal === '' ? undefined : { type: 'input_text', text: wellFormed(part.refusal) }
    case 'image_url':
      return imagePart(part.image_url.url, part.image_url.detail, `${at}.image_url.url`)
    case 'input_audio':
      return audioPart(part.input_audio, `${at}.input_audio`)
    case 'file':
      return filePart(part.file, `${at}.file`)
  }
}

const IMAGES = 'a PNG, JPEG, GIF or WebP image'

function imagePart(url: string, detail: string | undefined, at: string): Json {
  const part = { type: 'input_image', detail: detail ?? 'auto' }
  if (/^https?:\/\//i.test(url)) return { ...part, image_url: url }
  const parsed = parseDataUrl(url)
  if (!parsed) throw errors.invalidParameters(`${at} must be an https URL, or a data URL of ${IMAGES}.`, at)
  const mime = sniffImage(parsed.base64)
  if (!mime) throw errors.invalidParameters(`${at} does not hold ${IMAGES}.`, at)
  return { ...part, image_url: `data:${mime};base64,${parsed.base64}` }
}

const AUDIO = new Set(['wav', 'mp3'])

function audioPart({ data, format }: { data: string; format: string }, at: string): Json {
  if (!AUDIO.has(format)) {
    const where = `${at}.format`
    throw errors.invalidParameters(`${where} is "${format}"; this provider takes wav and mp3.`, where)
  }
  return { type: 'input_audio', input_audio: { data: parseDataUrl(data)?.base64 ?? data, format } }
}

type FilePart = Extract<ContentPart, { type: 'file' }>['file']

function filePart({ filename, file_data: data, file_id: id }: FilePart, at: string): Json {
  if (id) return { type: 'input_file', file_id: id }
  const name = filename && { filename }
  if (data && /^https?:\/\//i.test(data)) return { type: 'input_file', ...name, file_url: data }
  const parsed = parseFile(data ?? '', filename)
  if (!parsed) {
    const where = `${at}.file_data`
    throw errors.invalidParameters(`${where} must be a data URL such as "data:application/pdf;base64,…".`, where)
  }
  const { mime, base64 } = parsed
  if (mime.startsWith('image/')) return imagePart(data!, undefined, `${at}.file_data`)
  // The wire requires a file name.
  return { type: 'input_file', filename: filename || nameFor(mime), file_data: `data:${mime};base64,${base64}` }
}

function nameFor(mime: string): string {
  if (mime === 'application/pdf') return 'file.pdf'
  return isText(mime) ? 'file.txt' : 'file'
}
