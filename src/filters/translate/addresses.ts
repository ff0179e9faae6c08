/** Addresses in the parts of a chat request, which are fetched for its provider. */
import { isPublicHost } from '../../core/address.ts'
import type { ChatRequest, ContentPart } from '../../core/chat-request.ts'
import { urlOf } from '../../lib/url.ts'

/** The field of a part that may hold an address. */
const FIELDS: Partial<Record<ContentPart['type'], string>> = {
  image_url: 'image_url.url',
  file: 'file.file_data',
  input_audio: 'input_audio.data',
}

/** Where an address stands first, and in how many places: its file is sent once for each. */
export interface Addressed {
  readonly param: string
  count: number
}

/** Adds a place to those of an address. */
export function addPlace(addresses: Map<string, Addressed>, url: string, param: string): void {
  const known = addresses.get(url)
  if (known) known.count++
  else addresses.set(url, { param, count: 1 })
}

/** Every address that `addressOf` gives. */
export function addressesOf(
  { messages }: ChatRequest,
  addressOf: (part: ContentPart) => string | undefined,
): Map<string, Addressed> {
  const addresses = new Map<string, Addressed>()
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue
    for (const [j, part] of content.entries()) {
      const url = addressOf(part)
      if (url !== undefined) addPlace(addresses, url, `messages[${i}].content[${j}].${FIELDS[part.type]}`)
    }
  }
  return addresses
}

/** Whether an address that has passed its check is of a host that a provider may reach. */
export const isPublicUrl = (url: string): boolean => isPublicHost(urlOf(url)?.hostname ?? '')
