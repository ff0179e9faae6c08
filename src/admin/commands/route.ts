/** Explains the routing of a request. */
import { s } from '../../core/schema.ts'
import { maskAll } from '../../secrets/known.ts'
import { mapText } from '../../secrets/map-text.ts'
import { type CommandTable, command } from '../command.ts'

const question = s.object({
  model: s.string({ minLength: 1, maxLength: 256, description: 'a model, as a request names it' }),
  routing: s.optional(s.enum('auto', 'price', 'throughput', 'latency')),
  stream: s.optional(s.boolean()),
  prompt: s.optional(s.integer({ minimum: 0, maximum: 1_000_000, description: 'tokens, at most 1000000' })),
  session: s.optional(s.string({ minLength: 1, maxLength: 256 })),
})

/** `route.explain`. */
export const routeCommands: CommandTable = {
  /** → the candidates with their measurements and all terms of their scores, the selection and its reason. */
  'route.explain': command(question, async (args, context) => mapText(await context.explainRoute(args), maskAll)),
}
