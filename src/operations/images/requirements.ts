/** Requirements of an images request on a mapping: the fields marked M in docs/contract.md#images. */

import type { Requirement } from '../../core/operation.ts'
import type { Mapping } from '../../core/translator.ts'
import { serviceTier, supports } from '../requirements.ts'
import { type ImageEditRequest, type ImageRequest, MAX_IMAGES } from './request.ts'

type Op = 'images' | 'image_edits'

/** Rows of both operations; `op` names the wire that is looked at. */
function common(op: Op): Requirement<ImageRequest>[] {
  const carries = ({ wires }: Mapping, field: string) => wires.get(op)?.lacks?.has(field) !== true
  return [
    {
      param: 'aspect_ratio',
      what: 'this aspect ratio',
      offers: ({ aspectRatios }) => aspectRatios,
      needed: request => request.aspect_ratio !== undefined,
      met: ({ aspectRatios }, request) => aspectRatios?.includes(request.aspect_ratio!) !== false,
    },
    {
      param: 'size',
      what: 'this size',
      offers: ({ sizes }) => sizes,
      needed: request => request.size !== undefined && request.aspect_ratio === undefined,
      met: ({ sizes }, request) => sizes?.includes(request.size!) !== false,
    },
    {
      param: 'background',
      what: 'a transparent background',
      needed: request => request.background === 'transparent',
      met: mapping => carries(mapping, 'background'),
    },
    {
      param: 'output_format',
      what: 'this output format',
      needed: request => request.output_format !== undefined,
      met: (mapping, request) =>
        carries(mapping, 'output_format') && carries(mapping, `output_format:${request.output_format}`),
    },
    serviceTier,
    supports('stream', 'streaming', 'streaming', request => request.stream, { soft: true }),
  ]
}

const mostImages = ({ maxImages, wires }: Mapping): number =>
  Math.min(maxImages ?? MAX_IMAGES, wires.get('image_edits')?.maxInputs ?? MAX_IMAGES)

/** For `/v1/images/generations`. */
export const imageRequirements = common('images')

/** For `/v1/images/edits`. */
export const imageEditRequirements: readonly Requirement<ImageEditRequest>[] = [
  {
    param: 'images',
    what: 'so many images in one request',
    offers: mostImages,
    needed: request => request.images.length > 1,
    met: (mapping, request) => request.images.length <= mostImages(mapping),
  },
  {
    param: 'mask',
    what: 'a mask',
    needed: request => request.mask !== undefined,
    met: ({ wires }) => wires.get('image_edits')?.lacks?.has('mask') !== true,
  },
  ...common('image_edits'),
]
