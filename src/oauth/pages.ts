/** The consent pages: the client, the requested scopes, and a field for the key of the account. */
import { escaped, type Page, page } from '../lib/html.ts'
import type { Scope } from '../mcp/tool.ts'
import type { KnownClient } from './client-metadata.ts'
import { isLoopback, placeOf, sourceOf } from './redirects.ts'
import type { ConsentRequest } from './state.ts'

const MEANING: Readonly<Record<Scope, string>> = {
  'mcp:tools': 'Call models. This spends money, within the limits of the API key.',
  'usage:read': 'Read account, usage and costs.',
}

/** A name without format characters, which could reverse it or imitate another name. */
export const plainName = (name: string): string => name.replace(/\p{Cf}/gu, '')

/** Content of the consent page. */
interface ConsentPage {
  readonly client: Pick<KnownClient, 'name' | 'verified'>
  readonly request: ConsentRequest
  /** `request`, signed, for the hidden field. */
  readonly signed: string
  /** Scopes whose boxes are ticked: those of the last attempt, all at first. */
  readonly ticked: readonly string[]
  /** Why the last attempt failed. */
  readonly error?: string | undefined
}

/** A form without scripts; its redirect is allowed by the Content-Security-Policy. */
export function consentPage({ client, request, signed, ticked, error }: ConsentPage): Page {
  const name = plainName(client.name)
  const boxes = request.scopes.map(
    scope =>
      `<p><label><input type="checkbox" name="scope" value="${scope}"${ticked.includes(scope) ? ' checked' : ''}> ` +
      `${escaped(MEANING[scope])}</label></p>`,
  )
  // A client may also have addresses of its own: what counts is where this answer goes.
  const isLocal = isLoopback(request.redirectUri)
  const warning =
    client.verified !== undefined && isLocal
      ? '<p>Any program on this computer could use this name. Go on only if you have just started it yourself.</p>'
      : ''
  const body = `${error === undefined ? '' : `<p role="alert">${escaped(error)}</p>\n`}<p><strong>${escaped(name)}</strong> (${
    client.verified === undefined ? 'its name is not verified' : `verified: ${escaped(client.verified)}`
  }) asks for access to Model Gateway. You will be sent back to <strong>${escaped(placeOf(request.redirectUri))}</strong>.</p>
${warning}<form method="post" action="/oauth/authorize">
<input type="hidden" name="request" value="${escaped(signed)}">
<fieldset><legend>It may</legend>
${boxes.join('\n')}
</fieldset>
<p><label for="credential">API key or one-time code</label></p>
<input type="password" id="credential" name="credential" required autocomplete="off" spellcheck="false" autofocus aria-describedby="hint">
<p id="hint">It is not passed on. Your operator makes a one-time code with <code>gatewayctl members login-link</code>.</p>
<button type="submit" name="action" value="allow">Allow</button>
<button type="submit" name="action" value="deny" formnovalidate>Deny</button>
</form>`
  return page(`Connect ${name}`, body, `'self' ${sourceOf(request.redirectUri)}`)
}

/** The page of an error. `back`: a link that returns it to the client, when client and address are verified. */
export function errorPage(message: string, back?: { readonly href: string; readonly redirectUri: string }): Page {
  const link =
    back === undefined
      ? ''
      : `\n<p><a href="${escaped(back.href)}" rel="noreferrer">Return to <strong>${escaped(placeOf(back.redirectUri))}</strong></a></p>`
  return page(
    'Not connected',
    `<p role="alert">${escaped(message)}</p>\n<p>Close this page, and connect again from your program.</p>${link}`,
  )
}
