/** Pages without scripts: one style, allowed by its hash, and headers that let nothing else in. */
import { createHash } from 'node:crypto'

const STYLE =
  ':root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1rem}' +
  'pre{overflow-x:auto;padding:.75rem;border:1px solid;border-radius:.25rem}h1{line-height:1.2}' +
  'code,strong{overflow-wrap:anywhere}input,button{font:inherit}input[type=password]{width:100%;box-sizing:border-box;' +
  'padding:.5rem}button{padding:.5rem 1.25rem;margin:1rem .5rem 0 0}[role=alert]{border:2px solid;padding:.75rem}' +
  'fieldset{border:1px solid;border-radius:.25rem;margin:1rem 0}'
const HASH = createHash('sha256').update(STYLE).digest('base64')

/** For text and for attributes in quotes. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, char => `&#${char.charCodeAt(0)};`)

/** A page, ready to be sent. */
export interface Page {
  readonly html: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

/** `body` is HTML; its title is text. `formActions` are where its forms lead, as a Content-Security-Policy names them. */
export function page(title: string, body: string, formActions = "'none'"): Page {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${HASH}'`,
    `form-action ${formActions}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head><body><main>
<h1>${escaped(title)}</h1>
${body}
</main></body></html>
`
  const headers = [
    ...['content-security-policy', policy, 'x-frame-options', 'DENY', 'x-content-type-options', 'nosniff'],
    ...['cache-control', 'no-store', 'referrer-policy', 'same-origin'],
  ]
  return { html, headers }
}
