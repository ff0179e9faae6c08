/** Files in a client's own Messages body, for providers that get data alone. */
import {
  isObject,
  isText,
  type Json,
  type LoadedMedia,
  type MediaByAddress,
  textIn,
  typeOfBase64,
} from '../../src/plugin.ts'
import { withMedia as inlined, type MediaPlaces } from '../shared/addresses.ts'

const places: MediaPlaces = {
  // A server that the body names is an address, too.
  roots: ['messages', 'system', 'mcp_servers'],
  opaque: new Set(['input', 'input_schema', 'tool', 'tools']),
  inlined(part, media) {
    const { type, source } = part
    if ((type !== 'image' && type !== 'document') || !isObject(source) || source.type !== 'url') return undefined
    const file = media.get(textIn(source.url) ?? '')
    return file && { ...part, source: sourceOf(file, type) }
  },
  isAddress: (field, { type }, at) => field === 'url' && (type === 'url' || at === 'source'),
}

function sourceOf({ type, base64, name }: LoadedMedia, part: 'image' | 'document'): Json {
  const isDocument = part === 'document' && isText(typeOfBase64(base64, type, name))
  if (!isDocument) return { type: 'base64', media_type: type, data: base64 }
  return { type: 'text', media_type: 'text/plain', data: Buffer.from(base64, 'base64').toString('utf8') }
}

/** The body with files in place of their addresses. Throws a 400 that names another address, unless `partial`. */
export const withMedia = (body: Readonly<Json>, media: MediaByAddress, partial: boolean): Json =>
  inlined(body, media, places, partial)
