/** The simulated provider's embeddings in OpenAI's form. */
import type { Simulation } from '../../core/operation.ts'
import { type DemoInputs, embed } from './simulated.ts'

/** The path of OpenAI's embeddings API. */
export const demo: Readonly<Record<string, Simulation>> = {
  '/embeddings': ({ json }) => ({ json: embed(json as DemoInputs & { model: string }) }),
}
