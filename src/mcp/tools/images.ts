/** `generate-image` and `generate-nano-banana`: images in the answer, and in a folder where the operator has named one. */

import { type Infer, s } from '../../core/schema.ts'
import { imageType } from '../../media/type.ts'
import { type Block, type Tool, type ToolContext, type ToolResult, textBlock, toolError } from '../tool.ts'
import { generate } from './generate.ts'
import { folderOf, MAX_FILES, type Names, namesFor, save } from './upload.ts'

const PATH = '/v1/images/generations'
/** Characters of base64 that hold the first bytes. */
const HEAD_CHARACTERS = 24

const prompt = s.string({ minLength: 1 })

const imageInput = s.object({
  prompt,
  model: s.default(s.string({ minLength: 1, description: 'An id from list-image-models, or auto.' }), 'auto'),
  size: s.default(s.string({ minLength: 1 }), '1024x1024'),
  n: s.default(s.integer({ minimum: 1, maximum: 4 }), 1),
})

/** Runs the chain of an image request; images come as blocks in base64. */
export const generateImage: Tool<Infer<typeof imageInput>> = {
  name: 'generate-image',
  title: 'Generate an image',
  description: 'Makes images from a description. Spends money, within the limits of the API key.',
  scope: 'mcp:tools',
  input: imageInput,
  run: async (args, context) => {
    const made = await generateImages(context, args)
    return 'error' in made ? made.error : { content: made.blocks }
  },
}

const bananaInput = s.object({
  prompt,
  filename: s.optional(
    s.string({
      minLength: 1,
      maxLength: 200,
      description: 'Without path separators. Default: nano-banana-{timestamp}.png',
    }),
  ),
  aspect_ratio: s.optional(s.enum('1:1', '16:9', '4:3', '5:4')),
})

/** Generates images with a fixed model. Also saves each image where `uploads` names a folder and policy allows it. */
export const generateNanoBanana: Tool<Infer<typeof bananaInput>> = {
  name: 'generate-nano-banana',
  title: 'Generate an image with Nano Banana',
  description:
    'Makes an image with the Nano Banana model, and saves it where the server has a folder for that. Spends money, ' +
    'within the limits of the API key.',
  scope: 'mcp:tools',
  input: bananaInput,
  async run({ prompt, filename, aspect_ratio }, context) {
    const { ex, services } = context
    const folder = ex.caller.policy?.keepsReplies === false ? undefined : services.uploads
    let names: Names | undefined
    if (folder !== undefined || filename !== undefined) {
      const own = folder && folderOf(folder, ex.caller.principal!.orgId)
      const found = await namesFor(own, filename, services.now())
      if (typeof found === 'string') return toolError(`Invalid arguments for generate-nano-banana: filename ${found}`)
      names = found
    }
    const made = await generateImages(context, { model: ex.snapshot.mcp.nanoBanana, prompt, aspect_ratio, n: 1 })
    if ('error' in made) return made.error
    if (folder === undefined || !names) return { content: made.blocks }
    const images = made.blocks.filter(block => block.type === 'image')
    try {
      const { maxSaved } = ex.snapshot.mcp
      const saved = await save(folder, names, images, ex.caller.principal!.orgId, maxSaved)
      if (!saved) return { content: [textBlock(noRoom(maxSaved)), ...made.blocks] }
      return { content: [textBlock(`Saved: ${saved.join(', ')}`), ...made.blocks] }
    } catch (err) {
      // The image has been paid for, so that the caller gets it.
      services.log.error({ err, request_id: ex.id }, 'image not saved')
      return { content: [textBlock('The image could not be saved on the server.'), ...made.blocks] }
    }
  },
}

const noRoom = (most: number): string =>
  `The image is not saved: the folder for images holds at most ${most} bytes in ${MAX_FILES.toLocaleString('en')} files; ` +
  'one organization may use half of the free space. The operator can remove files from it, or raise mcp.max_saved.'

/** The fields of an images answer that the tools read. */
interface Answer {
  readonly data: readonly { readonly b64_json: string; readonly revised_prompt?: string }[]
}

async function generateImages(
  context: ToolContext,
  body: object,
): Promise<{ readonly error: ToolResult } | { readonly blocks: readonly Block[] }> {
  const made = await generate(context, PATH, body)
  if (made.error) return { error: made.error }
  const { data } = made.answer as Answer
  const blocks = data.flatMap(({ b64_json: image, revised_prompt }): Block[] => {
    const mimeType = imageType(Buffer.from(image.slice(0, HEAD_CHARACTERS), 'base64'))
    const block: Block[] = mimeType ? [{ type: 'image', data: image, mimeType }] : []
    return revised_prompt ? [textBlock(revised_prompt), ...block] : block
  })
  if (!blocks.some(({ type }) => type === 'image'))
    return { error: toolError('Error: 502 - The answer holds no image.') }
  return { blocks }
}
