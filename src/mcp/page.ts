/** The page for browsers at `/mcp`: how to connect, without personal data. */
import { escaped, type Page, page } from '../lib/html.ts'

const block = (title: string, ...lines: string[]): string =>
  `<section><h2>${escaped(title)}</h2><pre tabindex="0"><code>${escaped(lines.join('\n'))}</code></pre></section>`

/** `base` is a name of this server. */
export function setupPage(base: string): Page {
  const url = `${base}/mcp`
  const json = (value: object) => JSON.stringify(value, null, 2)
  const header = 'Authorization: Bearer YOUR_API_KEY'
  const body = `<p>This is the address of an MCP server: programs call models through it as tools, and see what they spend.</p>
<pre tabindex="0"><code>${escaped(url)}</code></pre>
<p>Your program opens a page here on which you paste an API key, or the one-time code that your operator gave you.</p>
${block('Claude Code', `claude mcp add --transport http gateway ${url}`)}
${block('Codex', `codex mcp add gateway --url ${url}`)}
${block('opencode (opencode.json)', json({ mcp: { gateway: { type: 'remote', url } } }))}
${block('Cursor (.cursor/mcp.json)', json({ mcpServers: { gateway: { url } } }))}
${block('VS Code (.vscode/mcp.json)', json({ servers: { gateway: { type: 'http', url } } }))}
${block('With an API key, without a page', `URL: ${url}`, `Header: ${header}`)}
${block('Older clients', `npx mcp-remote ${url}`)}
<section><h2>Scopes</h2><dl>
<dt>mcp:tools</dt><dd>Call models. This spends money, within the limits of the API key.</dd>
<dt>usage:read</dt><dd>Read account, usage and costs.</dd></dl></section>`
  return page('Connect to Model Gateway', body)
}
