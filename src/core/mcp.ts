/** What configuration says of the MCP server. */
import type { Site } from './site.ts'

export interface McpOptions {
  readonly site: Site
  /** The model of the tool `generate-nano-banana`. */
  readonly nanoBanana: string
}
