/** For the bundler in place of the schema validator of the MCP SDK, which `src/mcp/protocol.ts` does not use. */
export class AjvJsonSchemaValidator {}
