/** An OAuth client program and the user's browser, step by step. */
import { createHash, randomBytes } from 'node:crypto'
import type { Gateway } from './gateway.ts'

type Tree = Record<string, unknown>
type Headers = Record<string, string>
type Answer = { status: number; body: Tree; headers: globalThis.Headers }

export const callback = 'http://127.0.0.1:5555/cb'

export interface Page {
  readonly status: number
  readonly html: string
  readonly headers: globalThis.Headers
  /** Cookie name and value. */
  readonly cookie: string
  /** The hidden form field. */
  readonly request: string
  readonly location: string | null
}

let addresses = 0

/** Each instance has its own client address, when the gateway trusts its proxies. */
export class Program {
  readonly #url: string
  readonly verifier = randomBytes(32).toString('base64url')
  readonly challenge = createHash('sha256').update(this.verifier).digest('base64url')
  readonly address = `192.0.2.${++addresses}`
  id = ''
  secret: string | undefined

  constructor(gateway: Pick<Gateway, 'url'>) {
    this.#url = gateway.url
  }

  async send(path: string, init: RequestInit & { headers?: Headers } = {}): Promise<Response> {
    const headers = { 'x-forwarded-for': this.address, ...init.headers }
    return fetch(`${this.#url}${path}`, { redirect: 'manual', ...init, headers })
  }

  async #json(path: string, init: RequestInit & { headers?: Headers }): Promise<Answer> {
    const response = await this.send(path, init)
    const text = await response.text()
    return { status: response.status, body: text === '' ? {} : JSON.parse(text), headers: response.headers }
  }

  /** Registers; stores the answer as the program's client. */
  async register(metadata: Tree = {}, headers: Headers = {}): Promise<Answer> {
    const body = JSON.stringify({ redirect_uris: [callback], token_endpoint_auth_method: 'none', ...metadata })
    const answer = await this.#json('/oauth/register', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    })
    if (answer.status === 201) {
      this.id = String(answer.body.client_id)
      this.secret = answer.body.client_secret as string | undefined
    }
    return answer
  }

  /** Opens the page; undefined removes a parameter. */
  async open(parameters: Record<string, string | undefined> = {}, more = ''): Promise<Page> {
    const all = {
      response_type: 'code',
      client_id: this.id,
      redirect_uri: callback,
      state: 'a state',
      code_challenge: this.challenge,
      code_challenge_method: 'S256',
      ...parameters,
    }
    const query = new URLSearchParams(
      Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    return pageOf(await this.send(`/oauth/authorize?${query}${more}`))
  }

  /** Submits the form of a page as a browser does; undefined removes a field. */
  async submit(
    page: Page,
    fields: Record<string, string | readonly string[] | undefined>,
    headers: Headers = {},
  ): Promise<Page> {
    const all = { request: page.request, scope: ['mcp:tools', 'usage:read'], action: 'allow', ...fields }
    const body = new URLSearchParams()
    for (const [name, value] of Object.entries(all)) for (const one of [value ?? []].flat()) body.append(name, one)
    const sent = { cookie: page.cookie, origin: this.#url, 'sec-fetch-site': 'same-origin', ...headers }
    return pageOf(await this.send('/oauth/authorize', { method: 'POST', body, headers: sent }))
  }

  /** Opens the page and enters a credential; returns the code. */
  async code(credential: string, parameters: Record<string, string> = {}): Promise<string> {
    const { location, html } = await this.submit(await this.open(parameters), { credential })
    const code = location && new URL(location).searchParams.get('code')
    if (!code) throw new Error(`no code: ${location ?? html}`)
    return code
  }

  token(fields: Record<string, string | undefined>, headers: Headers = {}): Promise<Answer> {
    const all = { client_id: this.id, client_secret: this.secret, ...fields }
    const body = new URLSearchParams(
      Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    return this.#json('/oauth/token', { method: 'POST', body, headers })
  }

  redeem(code: string, changes: Record<string, string | undefined> = {}): Promise<Answer> {
    const fields = { grant_type: 'authorization_code', code, redirect_uri: callback, code_verifier: this.verifier }
    return this.token({ ...fields, ...changes })
  }

  refresh(token: unknown, changes: Record<string, string | undefined> = {}): Promise<Answer> {
    return this.token({ grant_type: 'refresh_token', refresh_token: String(token), ...changes })
  }

  /** Registers if needed, and signs in; returns the answer with the tokens. */
  async signIn(credential: string, parameters: Record<string, string> = {}): Promise<Tree> {
    if (this.id === '') await this.register()
    const { status, body } = await this.redeem(await this.code(credential, parameters))
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    return body
  }

  revoke(token: unknown, changes: Record<string, string> = {}): Promise<Answer> {
    const fields = { client_id: this.id, ...(this.secret && { client_secret: this.secret }), token: String(token) }
    return this.#json('/oauth/revoke', { method: 'POST', body: new URLSearchParams({ ...fields, ...changes }) })
  }
}

async function pageOf(response: Response): Promise<Page> {
  const html = await response.text()
  return {
    status: response.status,
    html,
    headers: response.headers,
    cookie: response.headers.get('set-cookie')?.split(';', 1)[0] ?? '',
    request: /name="request" value="([^"]*)"/.exec(html)?.[1] ?? '',
    location: response.headers.get('location'),
  }
}
