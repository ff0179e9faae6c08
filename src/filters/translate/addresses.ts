/** Addresses in the parts of a chat request, which are fetched for its provider. */
import type { ChatRequest, ContentPart } from '../../core/ops.ts'

/** The field of a part that may hold an address. */
const FIELDS: Partial<Record<ContentPart['type'], string>> = {
  image_url: 'image_url.url',
  file: 'file.file_data',
  input_audio: 'input_audio.data',
}

/** Whether a text is an http(s) address. */
export const isAddress = (text: string): boolean => /^https?:/i.test(text)

/** Every address that `addressOf` gives, with the field that holds it first. */
export function addressesOf(
  { messages }: ChatRequest,
  addressOf: (part: ContentPart) => string | undefined,
): Map<string, string> {
  const addresses = new Map<string, string>()
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue
    for (const [j, part] of content.entries()) {
      const url = addressOf(part)
      if (url === undefined || addresses.has(url)) continue
      addresses.set(url, `messages[${i}].content[${j}].${FIELDS[part.type]}`)
    }
  }
  return addresses
}
