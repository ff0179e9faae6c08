/** Every tool, in the order in which they are listed. */
import type { Tool } from '../tool.ts'
import { chat } from './chat.ts'
import { generateImage, generateNanoBanana } from './images.ts'
import { listImageModels, listModels } from './models.ts'

export const tools: readonly Tool[] = [
  chat,
  generateImage,
  generateNanoBanana,
  listModels,
  listImageModels,
] as readonly Tool[]
