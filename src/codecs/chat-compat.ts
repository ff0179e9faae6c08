/** What some clients expect of chat answers: `compat` of the endpoint in gateway.yaml. */
import { type Infer, s } from '../core/schema.ts'

export const chatCompat = s.object({
  /** Reasoning stands in `reasoning_content` too, the only name of it that some clients read. */
  reasoning_content: s.default(s.boolean(), true),
})
export type ChatCompat = Infer<typeof chatCompat>
