/** Files in a client's own generateContent body, for providers that get data alone. */
import { isObject, type Json, type MediaByAddress, textIn, typeOfBase64 } from '../../src/plugin.ts'
import { withMedia as inlined, type MediaPlaces } from '../shared/addresses.ts'

/** Files that the provider holds, and those of its maker's own sites. */
const HELD = /^(?:gs:\/\/|files\/|https:\/\/(?:generativelanguage\.googleapis\.com|(?:www\.)?youtube\.com|youtu\.be)\/)/

const UNKNOWN = 'application/octet-stream'

const places: MediaPlaces = {
  roots: ['contents', 'systemInstruction'],
  opaque: new Set(['args', 'response']),
  inlined(part, media) {
    const { fileData: named, ...rest } = part
    if (!isObject(named)) return undefined
    const file = media.get(textIn(named.fileUri) ?? '')
    if (!file) return undefined
    const { fileUri: _, ...kept } = named
    // Servers may not know the type that the client does.
    const declared = file.type === UNKNOWN ? (textIn(named.mimeType) ?? UNKNOWN) : file.type
    return { ...rest, inlineData: { ...kept, mimeType: typeOfBase64(file.base64, declared), data: file.base64 } }
  },
  isHeld: address => HELD.test(address),
}

/** The body with files in place of their addresses. Throws a 400 that names another address, unless `partial`. */
export const withMedia = (body: Readonly<Json>, media: MediaByAddress, partial: boolean): Json =>
  inlined(body, media, places, partial)
