/** Compatibility options of chat answers: `compat` of the endpoint in gateway.yaml. */
import { type Infer, s } from '../core/schema.ts'

/** The schema of `compat`. */
export const chatCompat = s.object({
  /** Also writes reasoning as `reasoning_content`, the only name that some clients read. */
  reasoning_content: s.default(s.boolean(), true),
})
/** The options, with defaults filled in. */
export type ChatCompat = Infer<typeof chatCompat>
