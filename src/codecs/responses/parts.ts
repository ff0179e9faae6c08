/** Parts of messages and of outputs. */

import type { ContentPart } from '../../core/chat-request.ts'
import { isObject, type Json, textIn } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'
import { assertAudioUrl, assertFile, assertImageUrl, assertOneSource } from '../url.ts'

const FORMATS: ReadonlySet<unknown> = new Set(['wav', 'mp3'])

/** Undefined for a part stored only at its provider. Throws a 400 that names the field. */
export function partsOf(part: Json, at: string): ContentPart[] {
  const { type } = part
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
    case 'summary_text':
      return [{ type: 'text', text: stringIn(part.text, `${at}.text`), ...breakpointOf(part) }]
    case 'refusal':
      return [{ type: 'refusal', refusal: stringIn(part.refusal, `${at}.refusal`) }]
    case 'input_image':
      return imageOf(part, at).map(image => Object.assign(image, breakpointOf(part)))
    case 'input_file':
      return fileOf(part, at).map(file => Object.assign(file, breakpointOf(part)))
    case 'input_audio': {
      const { data, format } = isObject(part.input_audio) ? part.input_audio : part
      const where = `${at}.input_audio`
      if (!FORMATS.has(format)) throw errors.invalidField(`${where}.format`, 'must be "wav" or "mp3"')
      const audio = { data: stringIn(data, `${where}.data`), format: format as 'wav' | 'mp3' }
      assertFile(audio.data, isObject(part.input_audio) ? `${where}.data` : `${at}.data`)
      return [{ type: 'input_audio', input_audio: audio }]
    }
    default:
      throw errors.invalidField(
        `${at}.type`,
        'must be one of "input_text", "input_image", "input_file", "input_audio", "output_text", "refusal"',
      )
  }
}

/** A breakpoint of the prompt cache; ignores other values. */
const breakpointOf = ({ prompt_cache_breakpoint: mark }: Json) =>
  isObject(mark) && mark.mode === 'explicit' ? { prompt_cache_breakpoint: { mode: 'explicit' as const } } : {}

const IMAGE_SOURCES = ['image_url', 'file_id']
const FILE_SOURCES = ['file_data', 'file_url', 'file_id']

function imageOf(part: Json, at: string): ContentPart[] {
  assertOneSource(part, at, IMAGE_SOURCES)
  const { image_url: url, file_id: id, detail } = part
  const address = textIn(url)
  if (address === undefined) {
    if (textIn(id) !== undefined) return []
    throw errors.invalidField(`${at}.image_url`, 'is required')
  }
  assertImageUrl(address, `${at}.image_url`)
  const isKnown = detail === 'low' || detail === 'high' || detail === 'auto'
  return [{ type: 'image_url', image_url: isKnown ? { url: address, detail } : { url: address } }]
}

function fileOf(part: Json, at: string): ContentPart[] {
  assertOneSource(part, at, FILE_SOURCES)
  const { file_data, file_url: url, file_id: id, filename } = part
  const address = textIn(url)
  if (address !== undefined && address !== '') assertAudioUrl(address, `${at}.file_url`)
  else if (textIn(file_data) !== undefined) assertFile(String(file_data), `${at}.file_data`)
  const data = textIn(file_data) ?? address
  if (data === undefined) {
    if (textIn(id) !== undefined) return []
    throw errors.invalidField(`${at}.file_data`, 'is required, or file_url')
  }
  const name = textIn(filename)
  return [{ type: 'file', file: { file_data: data, ...(name !== undefined && { filename: name }) } }]
}

function stringIn(value: unknown, at: string): string {
  if (typeof value === 'string') return value
  throw errors.invalidField(at, 'must be string')
}
