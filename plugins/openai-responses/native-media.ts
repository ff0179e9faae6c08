/** Files in a client's own Responses body, for providers that get data alone. */
import { isObject, type Json, type LoadedMedia, type MediaByAddress, textIn } from '../../src/plugin.ts'
import { mediaIn } from '../shared/addresses.ts'

/** Puts files in place of the addresses of a body (see `mediaIn`). */
export const withMedia = mediaIn({
  roots: ['input', 'prompt'],
  opaque: new Set(['arguments', 'carried', 'tools']),
  inlined(part, media) {
    switch (part.type) {
      case 'input_image':
        return imageOf(part, media)
      case 'input_file':
        return fileOf(part, media)
      case 'input_audio':
        return audioOf(part, media)
      default:
        return undefined
    }
  },
})

const fileAt = (media: MediaByAddress, value: unknown) => media.get(textIn(value) ?? '')
const dataUrl = ({ type, base64 }: LoadedMedia): string => `data:${type};base64,${base64}`

function imageOf(part: Readonly<Json>, media: MediaByAddress): Json | undefined {
  const file = fileAt(media, part.image_url)
  return file && { ...part, image_url: dataUrl(file) }
}

function fileOf(part: Readonly<Json>, media: MediaByAddress): Json | undefined {
  const file = fileAt(media, part.file_data) ?? fileAt(media, part.file_url)
  if (!file) return undefined
  const { file_url: _, ...rest } = part
  return { ...rest, filename: textIn(part.filename) ?? file.name ?? 'file', file_data: dataUrl(file) }
}

/** Its data stands in an object, or in the part itself. */
function audioOf(part: Readonly<Json>, media: MediaByAddress): Json | undefined {
  const holder = isObject(part.input_audio) ? part.input_audio : part
  const file = fileAt(media, holder.data)
  if (!file) return undefined
  const held = { ...holder, data: file.base64, format: file.audio ?? holder.format }
  return holder === part ? held : { ...part, input_audio: held }
}
