/** Which credentials each endpoint and admin command admits. An endpoint without a row fails. */
import { once } from 'node:events'
import t from 'tap'
import { commands } from '../../src/admin/commands/index.ts'
import { routes } from '../../src/admin/routes.ts'
import { endpoints } from '../../src/endpoints/index.ts'
import { commandsOf } from '../helpers/commands.ts'
import { type Gateway, startGateway } from '../helpers/gateway.ts'
import { RealtimeClient, refusalOf } from '../helpers/realtime-client.ts'
import { realtimeProvider } from '../helpers/realtime-provider.ts'

const CREDENTIALS = [
  ...['none', 'unknown key', 'revoked key', "archived project's key", 'key', "developer's key", 'publishable key'],
  ...['session key', "end user's session", 'client secret', 'OAuth token', 'admin token'],
] as const

/** The endpoints that answer alike: for each credential the status of the refusal, or `yes`. */
const ACCESS: readonly [says: string, statuses: string, endpoints: string][] = [
  [
    'everyone: what says how to begin, and paths that nobody serves',
    'yes yes yes yes yes yes yes yes yes yes yes yes',
    `GET /, GET /openapi.json, GET /v1/realtime, POST /v1/models/{+path}, POST /v1beta/models, PUT /v1beta/models, PATCH /v1beta/models,
    DELETE /v1beta/models, GET /v1beta/{+path}, POST /v1beta/{+path}, PUT /v1beta/{+path}, PATCH /v1beta/{+path},
    DELETE /v1beta/{+path}, GET /mcp, OPTIONS /mcp, DELETE /mcp, PUT /mcp, PATCH /mcp,
    GET /.well-known/oauth-protected-resource, OPTIONS /.well-known/oauth-protected-resource,
    GET /.well-known/oauth-protected-resource/mcp, OPTIONS /.well-known/oauth-protected-resource/mcp,
    GET /.well-known/oauth-authorization-server, OPTIONS /.well-known/oauth-authorization-server,
    GET /.well-known/oauth-authorization-server/mcp, OPTIONS /.well-known/oauth-authorization-server/mcp,
    GET /oauth/authorize, POST /oauth/authorize, POST /oauth/token, OPTIONS /oauth/token, OPTIONS /oauth/register,
    POST /oauth/revoke`,
  ],
  [
    'the catalogue: without a key, or with any that is valid',
    'yes 401 401 410 yes yes yes yes yes 403 401 401',
    `GET /v1/models, GET /v1/models/{+model}, GET /v1beta/models, GET /v1beta/models/{+model}, POST /v1/ai/{+path},
    GET /v1/ai/{+path}, POST /v2/ai/{+path}, GET /v2/ai/{+path}, POST /v3/ai/{+path}, GET /v3/ai/{+path},
    POST /v4/ai/{+path}, GET /v4/ai/{+path}, GET /v5/ai/{+path}, POST /v5/ai/{+path}, POST /v1/realtime/client-secrets,
    GET /v1/report, GET /v1/generation, POST /oauth/register`,
  ],
  [
    'the catalogue of the AI SDK: any valid key',
    '401 401 401 410 yes yes yes yes yes 403 401 401',
    'GET /v1/ai/config, GET /v2/ai/config, GET /v3/ai/config, GET /v4/ai/config',
  ],
  [
    'calls of models, and what they left: secret keys and sessions',
    '401 401 401 410 yes yes 403 yes yes 403 401 401',
    `POST /v1/chat/completions, POST /v1/messages, POST /v1/messages/count_tokens, POST /v1/completions,
    POST /v1/responses, GET /v1/responses/{id}, DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items,
    POST /v1/responses/{id}/cancel, POST /v1/ai/language-model, POST /v2/ai/language-model, POST /v3/ai/language-model,
    POST /v4/ai/language-model, POST /v1/embeddings, POST /v1/moderations, POST /v1/ocr, POST /v1/rerank,
    POST /v2/rerank, POST /v1/systemone, POST /v1/audio/speech, POST /v1/audio/transcriptions,
    POST /v1/audio/translations, POST /v1/images/generations, POST /v1/images/edits,
    POST /v1beta/models/{+model}:generateContent, POST /v1beta/models/{+model}:streamGenerateContent,
    POST /v1beta/models/{+model}:countTokens, POST /v1beta/models/{+model}:embedContent,
    POST /v1beta/models/{+model}:batchEmbedContents, POST /v1/models/{+model}:generateContent,
    POST /v1/models/{+model}:streamGenerateContent, POST /v1/models/{+model}:countTokens,
    POST /v1/models/{+model}:embedContent, POST /v1/models/{+model}:batchEmbedContents, POST /v1/videos,
    GET /v1/videos/{id}, DELETE /v1/videos/{id}, GET /v1/videos/{id}/content, GET /v1/videos/logs/{log_id}/content`,
  ],
  ['tools: also programs that act for a key', '401 401 401 410 yes yes 403 yes yes 403 yes 401', 'POST /mcp'],
  [
    'the state of a key and its project: the key itself',
    '401 401 401 410 yes yes 403 403 403 403 401 401',
    'GET /v1/key, POST /v1/sessions, GET /v1/videos, POST /v1/realtime/client_secrets',
  ],
  [
    'the balance: keys but those of developers',
    '401 401 401 410 yes 403 403 403 403 403 401 401',
    'GET /v1/credits, GET /v1/ai/credits, GET /v2/ai/credits, GET /v3/ai/credits, GET /v4/ai/credits',
  ],
]

/** Paths of the admin listener that need no token. */
const OPEN_TO_PROBES = ['/live', '/ready', '/metrics']

/** Upgrades of `GET /v1/realtime`, which is open to requests without one. */
const UPGRADES = '401 401 401 410 yes yes 403 403 403 yes 401 401'

const rpm = 1_000_000

async function start() {
  const provider = await realtimeProvider(t)
  const pricing = { prompt: '4', completion: '16', input_audio: '32', output_audio: '64', input_cache_read: '0.4' }
  return startGateway(t, {
    providers: {
      acme: {
        base_url: provider.url,
        wires: { realtime: 'openai.realtime' },
        models: [{ model: 'voice', id: 'rt-1', pricing, supports: ['realtime', 'tools'] }],
      },
    },
    models: [
      {
        ...{ id: 'voice', name: 'voice', family: 'test', input: ['text', 'audio'], output: ['text', 'audio'] },
        operations: ['realtime'],
      },
    ],
    config: { endpoints: { oauth: { ratelimit: { rpm } } }, mcp: { limits: { register: rpm } } },
  })
}

const bearer = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` })

/** One of each, in the order of `CREDENTIALS`. */
async function secretsOf(gateway: Gateway): Promise<(string | undefined)[]> {
  const command = commandsOf(gateway)
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'own', account: 'open' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'p' })
  const made = (kind: string, more: object = {}) =>
    command<{ key: string; id: string }>('keys.create', { project, kind, ...more })
  const { key, id } = await made('key')
  const { key: revoked, id: revokedId } = await made('key')
  await command('keys.revoke', { id: revokedId })
  const { id: closed } = await command<{ id: string }>('projects.create', { organization, name: 'closed' })
  const { key: archived } = await made('key', { project: closed })
  await command('projects.archive', { project: closed })
  await command('members.add', { organization, email: 'dev@x.example', role: 'developer', projects: 'all' })
  const { key: developer } = await made('key', { createdBy: 'dev@x.example' })
  const { key: publishable } = await made('publishable')
  const { key: sessionKey } = await made('session', { expires: '1h' })
  const post = async <T>(path: string, body: object): Promise<T> =>
    (await (await gateway.post(path, body, bearer(key))).json()) as T
  const session = await post<{ sessionToken: string }>('/v1/sessions', { customer: 'ann' })
  const settings = { session: { type: 'realtime', model: 'voice' } }
  const secret = await post<{ value: string }>('/v1/realtime/client_secrets', settings)
  const { clientId, clientSecret } = await command<Record<string, string>>('oauth.clients.create', {
    name: 'r',
    key: id,
  })
  const granted = await fetch(`${gateway.url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
    headers: { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}` },
  })
  const { access_token: token } = (await granted.json()) as { access_token: string }
  return [
    undefined,
    'mgw_sk_unknown',
    ...[revoked, archived, key, developer, publishable],
    sessionKey,
    session.sessionToken,
    secret.value,
    token,
    gateway.token,
  ]
}

/** The status as `ACCESS` shows it. */
const shown = (status: number | undefined): string =>
  status !== undefined && [401, 403, 410].includes(status) ? String(status) : 'yes'

let gateway: Gateway
let secrets: (string | undefined)[]
t.before(async () => {
  gateway = await start()
  secrets = await secretsOf(gateway)
})

t.test('the balance of an organization is shown to no developer of it', async t => {
  const command = commandsOf(gateway)
  const { id: organization } = await command<{ id: string }>('orgs.create', { name: 'staffed', account: 'open' })
  const { id: project } = await command<{ id: string }>('projects.create', { organization, name: 'p' })
  for (const [role, expected] of [
    ['developer', 403],
    ['admin', 200],
  ] as const) {
    const email = `${role}@x.example`
    await command('members.add', { organization, email, role, projects: 'all' })
    const { key } = await command<{ key: string }>('keys.create', { project, createdBy: email })
    for (const { method, path } of endpoints.filter(({ path }) => path.endsWith('/credits'))) {
      t.equal((await fetch(gateway.url + path, { method, headers: bearer(key) })).status, expected, `${role}: ${path}`)
    }
  }
})

t.test('each endpoint admits the credentials of its row, and no other', async t => {
  const rows = new Map(
    ACCESS.flatMap(([says, statuses, names]) => names.split(/,\s+/).map(name => [name, [says, statuses]] as const)),
  )
  t.strictSame(new Set(rows.keys()), new Set(endpoints.map(({ method, path }) => `${method} ${path}`)), 'one row each')
  for (const { method, path } of endpoints) {
    const url = gateway.url + path.replaceAll(/\{[^}]*\}/g, 'x')
    const body = method === 'GET' || method === 'OPTIONS' ? undefined : '{"model":"none"}'
    const asked = secrets.map(async secret => {
      const headers = { ...(secret && bearer(secret)), ...(body && { 'content-type': 'application/json' }) }
      const answer = await fetch(url, { method, redirect: 'manual', headers, ...(body && { body }) })
      await answer.arrayBuffer()
      t.ok(answer.status < 500 && answer.status !== 429, `${method} ${path}: ${answer.status}`)
      return shown(answer.status)
    })
    const statuses = await Promise.all(asked)
    const [says, expected] = rows.get(`${method} ${path}`)!
    t.strictSame(named(statuses), named(expected.split(' ')), `${method} ${path}, ${says}`)
  }
  const upgrades: string[] = []
  for (const secret of secrets) {
    const client = new RealtimeClient(
      gateway,
      '?model=voice',
      secret === undefined ? { protocols: ['realtime'] } : { key: secret },
    )
    const opened = once(client.ws, 'open').then(() => 101)
    upgrades.push(shown(await Promise.race([opened, refusalOf(client).then(([status]) => status)])))
    client.ws.terminate()
  }
  t.strictSame(named(upgrades), named(UPGRADES.split(' ')), 'realtime sessions')
})

t.test('the admin listener answers to its token, and to probes without one', async t => {
  const paths = [...Object.keys(routes), ...Object.keys(commands).map(name => `/commands/${name}`)]
  t.ok(
    OPEN_TO_PROBES.every(path => paths.includes(path)),
    'each exists',
  )
  for (const path of paths) {
    const method = routes[path]?.method ?? 'POST'
    // The other method is refused behind the token: nothing is changed.
    const other = method === 'GET' ? 'POST' : 'GET'
    const asked = secrets.map(async secret => {
      const sent = { method: secret === gateway.token ? other : method, ...(secret && { headers: bearer(secret) }) }
      const answer = await fetch(gateway.adminUrl + path, sent)
      await answer.arrayBuffer()
      return String(answer.status)
    })
    const refused = OPEN_TO_PROBES.includes(path) ? '200' : '401'
    const expected = secrets.map(secret => (secret === gateway.token ? '405' : refused))
    t.strictSame(named(await Promise.all(asked)), named(expected), path)
  }
})

const named = (statuses: readonly string[]): Record<string, string | undefined> =>
  Object.fromEntries(CREDENTIALS.map((credential, at) => [credential, statuses[at]]))
