/** The page at `/ui` of the admin listener: sign-in, pages, files. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AdminContext } from '../admin/context.ts'
import { equals } from '../admin/guard.ts'
import type { Log } from '../core/ports.ts'
import { asError, errors } from '../lib/error.ts'
import { maskAll } from '../secrets/known.ts'
import { addressOf, checkOrigin, cookieIn, cookieOf, readForm, SECURITY_HEADERS, sessionCookie } from './browser.ts'
import { staticFile } from './files.ts'
import { html, link } from './html.ts'
import { type Content, document, type Page, type Visit } from './layout.ts'
import { type OidcSignIn, SIGN_IN_SECONDS } from './oidc.ts'
import { pages } from './pages/index.ts'
import { chat } from './playground.ts'
import { type Session, Sessions } from './sessions.ts'

/** Settings of the page. */
interface UiOptions {
  readonly context: AdminContext
  readonly token: string
  readonly log: Log
  readonly readConfig: Visit['readConfig']
  readonly oidc?: OidcSignIn
}

const SIGN_IN = '/ui/sign-in'
const BY_PROVIDER = '/ui/sign-in/oidc'
const CALLBACK = '/ui/sign-in/callback'
const SIGN_OUT = '/ui/sign-out'
const PLAYGROUND = '/ui/playground'
const FILES = '/ui/static/'
const FILE_SECONDS = 3600

/** A request and its response. */
interface Http {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Returns the handler of requests for `/ui` and below. */
export function createUi(options: UiOptions): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const sessions = new Sessions()
  const isAdminToken = equals(options.token)
  const { context, readConfig, oidc } = options
  const served = { context, readConfig }
  return async (request, response) => {
    const http = { request, response }
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    const session = sessionOf(request)
    try {
      checkOrigin(request)
      await answer(http, session)
    } catch (thrown) {
      const { status, message, headers } = asError(thrown)
      if (status >= 500) options.log.error({ err: thrown, path: request.url!.split('?', 1)[0] }, 'page failed')
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
      if (response.headersSent) response.destroy()
      else send(http, failed(status, message, session), '', session)
    }
  }

  /** The session of a browser. It ends once the settings no longer allow its person. */
  function sessionOf(request: IncomingMessage): Session | undefined {
    const session = sessions.find(cookieIn(request, 'ui') ?? '')
    if (!session?.person || oidc?.allows(session.person)) return session
    sessions.end(session.id)
    return undefined
  }

  /** Answers at the paths that need no session, and leads to the sign-in at all others without one. */
  async function answer(http: Http, session: Session | undefined): Promise<void> {
    const { request } = http
    const url = new URL(request.url!, 'http://ui')
    const path = url.pathname.replace(/\/$/, '')
    const isPost = request.method === 'POST'
    if (!isPost && request.method !== 'GET' && request.method !== 'HEAD') {
      throw errors.methodNotAllowed(request.method!, ['GET', 'POST'])
    }
    if (path.startsWith(FILES)) return sendFile(http, path.slice(FILES.length))
    const { searchParams: query } = url
    if (path === SIGN_IN) return isPost ? signIn(http) : showSignIn(http, { query, oidc })
    if (path === BY_PROVIDER && oidc && !isPost) return leadToProvider(http, query, oidc)
    if (path === CALLBACK && oidc && !isPost) return signInPerson(http, query, oidc)
    if (!session) return leadToSignIn(http, isPost ? '/ui' : path + url.search)
    return answerPage(http, path, query, session)
  }

  async function answerPage(http: Http, path: string, query: URLSearchParams, session: Session): Promise<void> {
    const { request, response } = http
    const isPost = request.method === 'POST'
    const form = isPost ? await checkedForm(request, session) : undefined
    if (path === SIGN_OUT && isPost) {
      sessions.end(session.id)
      response.setHeader('set-cookie', cookieOf(request, 'ui'))
      return redirect(response, SIGN_IN)
    }
    const { page, menu, id } = found(path)
    if (path === PLAYGROUND && isPost) return chat({ id, query: form!, session, ...served }, response)
    const handler = isPost ? page.post : page.get
    if (!handler) throw errors.methodNotAllowed(request.method!, [isPost ? 'GET' : 'POST'])
    const visit: Visit = { id, query: form ?? query, session, ...served }
    send(http, await handler(visit), menu, session)
  }

  async function signIn(http: Http): Promise<void> {
    const { request, response } = http
    const form = await readForm(request)
    if (!isAdminToken(form.get('token')?.trim() ?? '')) {
      const error = 'This is not the admin token. Copy all of the file admin.token.'
      return showSignIn(http, { query: form, oidc, error })
    }
    response.setHeader('set-cookie', sessionCookie(request, sessions.begin()))
    redirect(response, pathWithin(form.get('to')))
  }

  /** Goes on by a page: in a redirect from another site, browsers would not send the cookie of the session. */
  async function signInPerson(http: Http, query: URLSearchParams, by: OidcSignIn): Promise<void> {
    const { request, response } = http
    const used = cookieOf(request, 'oidc')
    response.setHeader('set-cookie', used)
    const { person, to } = await by.finish(query, cookieIn(request, 'oidc'))
    response.setHeader('set-cookie', [used, sessionCookie(request, sessions.begin(person))])
    response.setHeader('refresh', `0; url=${to}`)
    send(http, { title: 'Signed in', body: html`<p><a href="${to}">Go on</a></p>` }, '', undefined)
  }
}

/** Throws 403 for a form without the token of its session. */
async function checkedForm(request: IncomingMessage, session: Session): Promise<URLSearchParams> {
  const form = await readForm(request)
  if (session.isToken(form.get('csrf') ?? '')) return form
  throw errors.forbidden('This form is of an earlier session. Open the page again.')
}

/** The page of a path: itself, or that of the one record whose id follows. Throws 404. */
function found(path: string): { page: { get?: Page; post?: Page }; menu: string; id: string } {
  if (Object.hasOwn(pages, path)) return { page: pages[path]!, menu: path, id: '' }
  const slash = path.lastIndexOf('/')
  const menu = path.slice(0, slash)
  const pattern = `${menu}/:id`
  if (Object.hasOwn(pages, pattern)) return { page: pages[pattern]!, menu, id: decoded(path.slice(slash + 1)) }
  throw errors.notFound('There is no such page.')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw errors.notFound('There is no such page.')
  }
}

/** A path of this page: a link that leads to the sign-in leads to no other origin after it. */
function pathWithin(to: string | null): string {
  const own = 'http://ui'
  if (to === null || !URL.canParse(to, own)) return '/ui'
  const { origin, pathname, search } = new URL(to, own)
  return origin === own && /^\/ui(?:\/|$)/.test(pathname) ? pathname + search : '/ui'
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { location, 'cache-control': 'no-store', 'content-length': 0 }).end()
}

/** A part that is read again follows by a header: it would not show a whole page. */
function leadToSignIn({ request, response }: Http, to: string): void {
  const location = link(SIGN_IN, { to: to === '/ui' ? undefined : to })
  if (request.headers['hx-request'] === undefined) redirect(response, location)
  else response.writeHead(401, { 'hx-redirect': location, 'cache-control': 'no-store', 'content-length': 0 }).end()
}

async function leadToProvider({ request, response }: Http, query: URLSearchParams, by: OidcSignIn): Promise<void> {
  const { location, sealed } = await by.begin(addressOf(request, CALLBACK), pathWithin(query.get('to')))
  response.setHeader('set-cookie', cookieOf(request, 'oidc', sealed, SIGN_IN_SECONDS))
  redirect(response, location)
}

/** Values of the sign-in page. */
interface SignIn {
  readonly query: URLSearchParams
  readonly oidc: OidcSignIn | undefined
  readonly error?: string
}

function showSignIn(http: Http, { query, oidc, error }: SignIn): void {
  const to = pathWithin(query.get('to'))
  const provider = oidc?.provider
  const byProvider =
    provider !== undefined &&
    html`<p><a href="${link(BY_PROVIDER, { to })}">Sign in with ${provider}</a></p>
`
  const body = html`${byProvider}${error !== undefined && html`<p role="alert" id="error">${error}</p>`}
<form method="post" action="${SIGN_IN}">
<input type="hidden" name="to" value="${to}">
<p><label for="token">Admin token</label></p>
<p><input type="password" id="token" name="token" required autofocus autocomplete="current-password" aria-describedby="hint${error !== undefined && ' error'}"></p>
<p class="hint" id="hint">The content of the file <code>admin.token</code> beside the database, such as <code>data/admin.token</code>.</p>
<p><button>Sign in</button></p>
</form>`
  send(http, { title: 'Sign in', body, status: error === undefined ? 200 : 401 }, '', undefined)
}

const failed = (status: number, message: string, session: Session | undefined): Content => ({
  title: status === 404 ? 'Not found' : 'This did not work',
  body: html`<p role="alert">${message}</p>
<p>${session ? html`<a href="/ui">Overview</a>` : html`<a href="${SIGN_IN}">Sign in</a>`}</p>`,
  status,
})

function send({ request, response }: Http, content: Content, menu: string, session: Session | undefined): void {
  const body = maskAll(document(content, menu, session))
  response.writeHead(content.status ?? 200, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

async function sendFile({ request, response }: Http, name: string): Promise<void> {
  const file = await staticFile(name)
  if (!file) throw errors.notFound('There is no such file.')
  const isGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  response.setHeader('cache-control', `private, max-age=${FILE_SECONDS}`)
  response.setHeader('etag', file.etag)
  response.setHeader('vary', 'accept-encoding')
  if (request.headers['if-none-match'] === file.etag) {
    response.writeHead(304).end()
    return
  }
  const body = isGzip ? file.gzipped : file.body
  response.writeHead(200, {
    'content-type': file.contentType,
    'content-length': body.length,
    ...(isGzip && { 'content-encoding': 'gzip' }),
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}
