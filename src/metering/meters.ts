/** The meters of an exchange: by reports of providers, else by what was sent and delivered. */
import type { Meters } from '../core/meter.ts'
import { AnswerUsage } from './answer-usage.ts'
import { PromptEstimate } from './prompt-estimate.ts'

export const meters: Meters = {
  prompt: ex => new PromptEstimate(ex),
  answer: ex => new AnswerUsage(ex),
}
