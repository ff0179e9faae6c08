/** Names that apps have besides the one that they are counted by. */

const CLAUDE_CODE = 'claude.com/claude-code'

/** In lower case. */
export const appAliases: ReadonlyMap<string, string> = new Map([
  ['open-code', 'opencode'],
  ['roo-cline', 'roo-code'],
  ['kilo', 'kilo-code'],
  ['codeium', 'windsurf'],
  ['copilot', 'github-copilot'],
  ['hermes', 'hermes-agent'],
  ['claude-cli', CLAUDE_CODE],
  ['claude-code', CLAUDE_CODE],
])
