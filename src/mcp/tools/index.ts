/** Every tool, in the order in which they are listed. */
import type { Tool } from '../tool.ts'
import { getAccount } from './account.ts'
import { chat } from './chat.ts'
import { generateImage, generateNanoBanana } from './images.ts'
import { listImageModels, listModels } from './models.ts'
import { getUsage, getUsageBreakdown } from './usage.ts'

/** The rows of `tools/list`. */
export const tools = [
  getAccount,
  getUsage,
  getUsageBreakdown,
  chat,
  generateImage,
  generateNanoBanana,
  listModels,
  listImageModels,
] as readonly Tool[]
