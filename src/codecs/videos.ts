/** Client wire of `POST /v1/videos`, as JSON and as a form. */

import type { Codec } from '../core/codec.ts'
import { Form } from '../lib/body.ts'
import { errors } from '../lib/error.ts'
import type { ImageInput } from '../operations/images/request.ts'
import { type VideoBody, type VideoRequest, videoBody } from '../operations/videos/request.ts'
import { formBody } from './form.ts'
import { imageFromFile, imageFromUrl } from './image-inputs.ts'
import { assertPublicUrl } from './url.ts'
import { checkedBy, validator } from './validate.ts'
import { targetHeaders, WholeEncoder } from './whole.ts'

const validate = validator(videoBody)
const MAX_REFERENCES = 9

/** Answers the job. `callback_url` and `callback_secret` go together. */
export const videos: Codec<'videos'> = {
  wire: 'openai.videos',
  decode(body, ex): VideoRequest {
    if (!(body instanceof Form)) return canonical(validate(body), new Map())
    const { fields, files } = formBody(body, videoBody, ex.input)
    const images = new Map([...files].map(([name, uploads]) => [name, uploads.map(file => imageFromFile(file, name))]))
    return canonical(validate(fields), images)
  },
  encoder: ex => {
    const encoder = new WholeEncoder<object>(ex, job => job)
    // The cost is known only at the end.
    return Object.assign(encoder, { headers: () => targetHeaders(ex) })
  },
  ...checkedBy(validate),
}

type Files = ReadonlyMap<string, readonly ImageInput[]>
type Given = VideoBody['image'] | { image_url?: unknown; file_id?: unknown }

function inputOf(given: Given, param: string): ImageInput | undefined {
  if (given == null) return undefined
  const url: unknown = typeof given === 'string' ? given : given.image_url
  if (typeof url !== 'string') throw errors.invalidField(param, 'expected an image_url, or a file')
  return imageFromUrl(url, param)
}

function oneOf(body: VideoBody, files: Files, name: 'image' | 'last_frame'): ImageInput | undefined {
  const [file, second] = files.get(name) ?? []
  if (second || (file && body[name] != null))
    throw errors.invalidFormData(`"${name}" takes one value, but occurs twice`)
  return file ?? inputOf(body[name], name)
}

function referencesIn(body: VideoBody, files: Files): readonly ImageInput[] {
  const name = body.input_reference != null || files.has('input_reference') ? 'input_reference' : 'reference_images'
  const other = name === 'input_reference' && (body.reference_images != null || files.has('reference_images'))
  if (other) throw errors.invalidField('input_reference', 'cannot be combined with reference_images')
  const given = body[name]
  const list = (Array.isArray(given) ? given : given == null ? [] : [given]) as Given[]
  const images = list.map((one, at) => inputOf(one, Array.isArray(given) ? `${name}[${at}]` : name)!)
  const all = [...(files.get(name) ?? []), ...images]
  if (all.length > MAX_REFERENCES) throw errors.invalidField(name, `at most ${MAX_REFERENCES} are accepted`)
  return all
}

function addressesIn(given: readonly unknown[] | null | undefined, param: string, key: string): string[] {
  return (given ?? []).map((one, at) => {
    const url = String(typeof one === 'string' ? one : (one as Record<string, unknown>)[key])
    assertPublicUrl(url, `${param}[${at}]`)
    return url
  })
}

function canonical(body: VideoBody, files: Files): VideoRequest {
  const image = oneOf(body, files, 'image')
  const last_frame = oneOf(body, files, 'last_frame')
  const reference_images = referencesIn(body, files)
  const reference_videos = addressesIn(body.reference_videos, 'reference_videos', 'video_url')
  const reference_audios = addressesIn(body.reference_audios, 'reference_audios', 'audio_url')
  const { callback_url: url, callback_secret: secret } = body
  if (last_frame && !image) throw errors.invalidField('last_frame', 'also needs a first frame in image')
  const refers = reference_images.length + reference_videos.length + reference_audios.length > 0
  if (image && refers) throw errors.invalidField('image', 'frames cannot be combined with references')
  if ((url == null) !== (secret == null)) {
    const missing = url == null ? 'callback_url' : 'callback_secret'
    throw errors.invalidField(missing, 'is required, as callback_url and callback_secret go together')
  }
  return {
    model: body.model,
    prompt: body.prompt,
    seconds: body.seconds == null ? undefined : Number(body.seconds),
    size: body.size ?? '1280x720',
    audio: body.audio ?? undefined,
    image,
    last_frame,
    reference_images,
    reference_videos,
    reference_audios,
    callback: url == null || secret == null ? undefined : { url, secret },
    seed: body.seed ?? undefined,
    negative_prompt: body.negative_prompt ?? undefined,
  }
}
