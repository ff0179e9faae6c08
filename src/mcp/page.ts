/** The page that browsers get at `/mcp`: how to connect, and nothing about anybody. */
import { createHash } from 'node:crypto'

const STYLE =
  ':root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1rem}' +
  'pre{overflow-x:auto;padding:.75rem;border:1px solid;border-radius:.25rem}h1{line-height:1.2}'
const HASH = createHash('sha256').update(STYLE).digest('base64')

/** Names and values in turn. */
const HEADERS = [
  'content-security-policy',
  `default-src 'none'; style-src 'sha256-${HASH}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
  'x-frame-options',
  'DENY',
  'x-content-type-options',
  'nosniff',
  'cache-control',
  'no-store',
  'referrer-policy',
  'same-origin',
]

const escaped = (text: string): string => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

const block = (title: string, ...lines: string[]): string =>
  `<section><h2>${escaped(title)}</h2><pre tabindex="0"><code>${escaped(lines.join('\n'))}</code></pre></section>`

/** `base` is a name of this server. */
export function setupPage(base: string): { readonly html: string; readonly headers: readonly string[] } {
  const url = `${base}/mcp`
  const json = (value: object) => JSON.stringify(value, null, 2)
  const headers = { Authorization: 'Bearer YOUR_API_KEY' }
  const header = `Authorization: ${headers.Authorization}`
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Connect to Model Gateway</title><style>${STYLE}</style></head><body><main>
<h1>Connect to Model Gateway</h1>
<p>This is the address of an MCP server: programs call models through it as tools, and see what they spend.</p>
<pre tabindex="0"><code>${escaped(url)}</code></pre>
${block('Claude Code', `claude mcp add --transport http gateway ${url} --header "${header}"`)}
${block('Codex', `codex mcp add gateway --url ${url} --bearer-token-env-var GATEWAY_API_KEY`)}
${block('opencode (opencode.json)', json({ mcp: { gateway: { type: 'remote', url, headers } } }))}
${block('Cursor and VS Code', json({ mcpServers: { gateway: { url, headers } } }))}
${block('With an API key', `URL: ${url}`, `Header: ${header}`)}
${block('Older clients', `npx mcp-remote ${url} --header "${header}"`)}
<section><h2>What is asked for</h2><dl>
<dt>mcp:tools</dt><dd>Call models. This spends money, within the limits of the API key.</dd>
<dt>usage:read</dt><dd>Read account, usage and costs.</dd></dl></section>
</main></body></html>
`
  return { html, headers: HEADERS }
}
