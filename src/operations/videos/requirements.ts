/** What a videos request needs of a mapping: the fields marked M in media.md section 10.1. */
import type { Capability, Mapping } from '../../core/catalog.ts'
import type { Requirement } from '../../core/operation.ts'
import type { VideoRequest } from './request.ts'

const supports = (
  param: keyof VideoRequest,
  what: string,
  capability: Capability,
  needed: (request: VideoRequest) => boolean,
): Requirement<VideoRequest> => ({ param, what, needed, met: mapping => mapping.supports.has(capability) })

const MAX_REFERENCE_IMAGES = 3
const mostImages = ({ maxReferenceImages = MAX_REFERENCE_IMAGES }: Mapping): number => maxReferenceImages

export const videoRequirements: readonly Requirement<VideoRequest>[] = [
  {
    param: 'size',
    what: 'this size',
    offers: ({ videoSizes }) => videoSizes,
    needed: () => true,
    met: ({ videoSizes }, { size }) => videoSizes?.includes(size) !== false,
  },
  {
    param: 'seconds',
    what: 'this length',
    offers: ({ videoSeconds }) => videoSeconds?.map(String),
    needed: ({ seconds }) => seconds !== undefined,
    met: ({ videoSeconds }, { seconds }) => videoSeconds?.includes(seconds!) !== false,
  },
  supports('audio', 'videos with sound', 'video_audio', ({ audio }) => audio === true),
  supports('audio', 'videos without sound', 'video_without_audio', ({ audio }) => audio === false),
  supports('image', 'a first frame', 'image_to_video', ({ image }) => image !== undefined),
  supports('last_frame', 'a last frame', 'last_frame', ({ last_frame: last }) => last !== undefined),
  supports('reference_images', 'reference images', 'reference_images', one => one.reference_images.length > 0),
  {
    param: 'reference_images',
    what: 'so many reference images',
    offers: mostImages,
    needed: ({ reference_images: images }) => images.length > 0,
    met: (mapping, { reference_images: images }) => images.length <= mostImages(mapping),
  },
  supports('reference_videos', 'reference videos', 'reference_videos', one => one.reference_videos.length > 0),
  supports('reference_audios', 'reference audio', 'reference_audios', one => one.reference_audios.length > 0),
]
