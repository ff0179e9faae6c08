/** The SDKs' own clients of both eras sign in by their own code: discovery, registration, PKCE, tokens, refresh. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { commandsOf } from '../helpers/commands.ts'
import { startGateway } from '../helpers/gateway.ts'
import { callback, Program } from '../helpers/oauth.ts'
import { startUpstream } from '../helpers/upstream.ts'

const upstream = await startUpstream(t)
const gateway = await startGateway(t, {
  providers: { a: { base_url: upstream.url('a') } },
  config: { mcp: { limits: { register: 100 } }, endpoints: { oauth: { ratelimit: { rpm: 10_000 } } } },
})
const command = commandsOf(gateway)
const url = new URL(`${gateway.url}/mcp`)

/** What a program keeps for the SDK, and the page that it opens. */
function provider(scope?: string) {
  const kept: { client?: unknown; tokens?: Record<string, unknown>; verifier?: string; page?: URL } = {}
  const own = {
    redirectUrl: callback,
    clientMetadata: {
      client_name: 'An SDK',
      redirect_uris: [callback],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      ...(scope && { scope }),
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client: unknown) => {
      kept.client = client
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens: Record<string, unknown>) => {
      kept.tokens = tokens
    },
    saveCodeVerifier: (verifier: string) => {
      kept.verifier = verifier
    },
    codeVerifier: () => kept.verifier,
    redirectToAuthorization: (page: URL) => {
      kept.page = page
    },
    invalidateCredentials: (what: string) => {
      if (what !== 'verifier') delete kept.tokens
    },
  }
  return { kept, own: own as unknown as OAuthClientProvider }
}

/** Opens the page as a person would, and pastes a key; what the program hears of it. */
async function consent(page: URL, key: string): Promise<URLSearchParams> {
  const person = new Program(gateway)
  const opened = await person.open(Object.fromEntries(page.searchParams))
  const { location } = await person.submit(opened, { credential: key })
  return new URL(location!).searchParams
}

interface Connection {
  connect(): Promise<unknown>
  finish(answer: URLSearchParams): Promise<unknown>
  account(): Promise<unknown>
  close(): Promise<unknown>
}
type Connect = (auth: OAuthClientProvider) => Connection

const call = { name: 'get-account', arguments: {} }
const connections: Record<string, Connect> = {
  'SDK 1 over Streamable HTTP': auth => {
    const client = new Client({ name: 'test', version: '1' })
    let transport = new StreamableHTTPClientTransport(url, { authProvider: auth })
    return {
      connect: () => client.connect(transport),
      finish: async answer => {
        await transport.finishAuth(answer.get('code')!)
        transport = new StreamableHTTPClientTransport(url, { authProvider: auth })
      },
      account: () => client.callTool(call),
      close: () => client.close(),
    }
  },
  'SDK 1 over HTTP+SSE': auth => {
    const made = () => new Client({ name: 'test', version: '1' })
    let client = made()
    let transport = new SSEClientTransport(url, { authProvider: auth })
    return {
      connect: () => client.connect(transport),
      finish: async answer => {
        await transport.finishAuth(answer.get('code')!)
        await client.close()
        client = made()
        transport = new SSEClientTransport(url, { authProvider: auth })
      },
      account: () => client.callTool(call),
      close: () => client.close(),
    }
  },
  ...Object.fromEntries(
    (['legacy', 'auto'] as const).map((mode): [string, Connect] => [
      `SDK 2, ${mode}`,
      auth => {
        const options = { authProvider: auth as never }
        const client = new ModernClient({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
        let transport = new ModernTransport(url, options)
        return {
          connect: () => client.connect(transport),
          finish: async answer => {
            await transport.finishAuth(answer)
            transport = new ModernTransport(url, options)
          },
          account: () => client.callTool(call),
          close: () => client.close(),
        }
      },
    ]),
  ),
}

for (const [name, connect] of Object.entries(connections)) {
  t.test(`${name} signs in, calls a tool and refreshes`, async t => {
    const { kept, own } = provider()
    const connection = connect(own)
    await t.rejects(connection.connect(), /Unauthorized/i)
    t.equal(kept.page?.origin, gateway.url)
    t.equal(kept.page?.searchParams.get('resource'), url.href)
    t.equal(kept.page?.searchParams.get('code_challenge_method'), 'S256')
    await connection.finish(await consent(kept.page!, gateway.key))
    t.match(kept.tokens, { token_type: 'Bearer', refresh_token: /^mgw_rt_/ })
    await connection.connect()
    t.match(await connection.account(), { structuredContent: { apiKey: { name: 'default' } } })
    const before = kept.tokens!
    kept.tokens = { ...before, access_token: 'mgw_at_over' }
    t.match(await connection.account(), { structuredContent: { apiKey: { name: 'default' } } })
    t.not(kept.tokens.refresh_token, before.refresh_token, 'it has refreshed by itself')
    await connection.close()
  })
}

t.test('an SDK client goes on when its grant has ended: it opens the page again', async t => {
  const { kept, own } = provider('usage:read')
  const connection = connections['SDK 1 over Streamable HTTP']!(own)
  await connection.connect().catch(() => undefined)
  await connection.finish(await consent(kept.page!, gateway.key))
  await connection.connect()
  const grants = await command<{ id: string; client: string }[]>('oauth.grants.list')
  const { client_id: client } = kept.client as { client_id: string }
  await command('oauth.grants.revoke', { id: grants.find(one => one.client === client)!.id })
  delete kept.page
  await t.rejects(connection.account(), /Unauthorized/i)
  t.ok(kept.page)
  await connection.close()
})
