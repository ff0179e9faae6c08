/** What an answer that its client left may have cost besides text, though it was not seen. */
import type { Exchange } from '../core/exchange.ts'
import { IMAGE_TOKENS } from '../core/media.ts'
import { mergeUsage, type Usage } from '../core/usage.ts'
import { extrasOf } from './requests.ts'

/** How much of what the answer has cost is assumed. */
export type Assumed = 'nothing' | 'some' | 'all'

/**
 * Adds it to the `usage` of a chat answer, of which `written` tokens were seen: images of a model that makes these alone,
 * and an image, or a search, before any text.
 */
export function assume(ex: Exchange, usage: Usage, written: number): Assumed {
  const { output_images: images = 0, web_search: searches = 0, ...tokens } = extrasOf(ex)
  const isSilent = !ex.hasContent
  const searched = searches > 0 && isSilent && usage.web_search === undefined
  if (searched) usage.web_search = 1
  const isDrawn = drawsOnly(ex)
  const isMissing = images > (usage.output_images ?? 0) && !(usage.image_output! > 0)
  const hasImages = isMissing && (isSilent || isDrawn)
  if (hasImages && isDrawn) mergeUsage(usage, { ...tokens, output_images: images })
  else if (hasImages) {
    usage.output_images = images
    usage.image_output = images * IMAGE_TOKENS
    usage.completion = usage.image_output + (usage.completion ?? written)
  }
  if (!searched && !hasImages) return 'nothing'
  return isDrawn ? 'all' : 'some'
}

/** The answer is images alone. */
function drawsOnly({ target }: Exchange): boolean {
  const { output } = target!.mapping.model
  return output.includes('image') && !output.includes('text')
}
