/** The AI SDK's gateway protocol, and MCP with its authorization server. */
import { s } from '../../core/schema.ts'
import { registration } from '../../oauth/register.ts'
import { answered, constant, named, orNull, type Row, type Rows } from '../row.ts'

const finish = {
  finishReason: s.either(s.string(), s.open({ unified: s.string() })),
  usage: s.open({}),
  providerMetadata: s.optional(s.open({})),
}
const part = named('LanguageModelPart', s.open({ type: s.string() }))
const call = named(
  'LanguageModelCall',
  s.open({
    prompt: s.array(s.open({ role: s.enum('system', 'user', 'assistant', 'tool'), content: s.unknown() })),
    maxOutputTokens: s.optional(s.integer({ minimum: 1 })),
    temperature: s.optional(s.number()),
    topP: s.optional(s.number()),
    tools: s.optional(s.array(s.open({ type: s.string() }))),
    toolChoice: s.optional(s.open({ type: s.string() })),
    responseFormat: s.optional(s.open({ type: s.enum('text', 'json') })),
    providerOptions: s.optional(s.open({})),
  }),
)
const result = named(
  'LanguageModelResult',
  s.open({ content: s.array(part), ...finish, warnings: s.array(s.open({ type: s.string() })) }),
)
const price = s.optional(s.string())
const models = named(
  'LanguageModelList',
  s.open({
    models: s.array(
      s.open({
        id: s.string(),
        name: s.string(),
        description: orNull(s.string()),
        pricing: orNull(s.open({ input: price, output: price, input_cache_read: price, input_cache_write: price })),
        specification: s.open({ specificationVersion: s.string(), provider: s.string(), modelId: s.string() }),
        modelType: constant('language'),
      }),
    ),
  }),
)
const balance = named('Credits', s.open({ balance: s.string(), total_used: s.string() }))

const credits: Omit<Row, 'id'> = {
  tag: 'AI SDK',
  summary: 'Read the credits of the organization',
  errors: 'AiSdkError',
  answers: answered('Balance and lifetime spending in USD.', balance),
}

const language: Omit<Row, 'id'> = {
  tag: 'AI SDK',
  summary: 'Answer a prompt of the AI SDK',
  errors: 'AiSdkError',
  headers: {
    'ai-language-model-id': { description: 'The model.', required: true, example: 'demo' },
    'ai-language-model-streaming': { description: '`true` for a stream of parts.', example: 'false' },
    'ai-language-model-specification-version': { description: 'The version of the specification.' },
  },
  bodies: { 'application/json': call },
  examples: {
    whole: {
      summary: 'A question',
      value: { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Say hello in one word.' }] }] },
    },
  },
  answers: answered('The result, or a stream of parts that ends with `data: [DONE]`.', result, { stream: part }),
}

const aiSdk = Object.fromEntries(
  ['V1', 'V2', 'V3', 'V4'].flatMap((version): [string, Row][] => {
    const prefix = `/${version.toLowerCase()}/ai`
    return [
      [`POST ${prefix}/language-model`, { ...language, id: `callLanguageModel${version}` }],
      [
        `GET ${prefix}/config`,
        {
          id: `listLanguageModels${version}`,
          tag: 'AI SDK',
          summary: 'List the models of the AI SDK',
          errors: 'AiSdkError',
          answers: answered('The models.', models),
        },
      ],
      [`GET ${prefix}/credits`, { ...credits, id: `getCredits${version}` }],
    ]
  }),
)

const id = s.either(s.string(), s.integer())
const message = named(
  'RpcMessage',
  s.open({
    jsonrpc: constant('2.0'),
    id: s.optional(id),
    method: s.string({ minLength: 1 }),
    params: s.optional(s.open({})),
  }),
)
const rpcAnswer = named(
  'RpcAnswer',
  s.open({
    jsonrpc: constant('2.0'),
    id: orNull(id),
    result: s.optional(s.open({})),
    error: s.optional(s.open({ code: s.integer(), message: s.string(), data: s.optional(s.unknown()) })),
  }),
)
const html = { 'text/html': s.string() }
const page = {
  200: { description: 'The page.', content: html },
  303: { description: 'Back to the client.' },
}
const hint = { tag: 'OAuth', errors: 'OAuthError' } as const

const metadata = (kind: 'protected-resource' | 'authorization-server', name: string): Rows => {
  const schema = named(
    `${name}Metadata`,
    kind === 'protected-resource'
      ? s.open({ resource: s.string(), authorization_servers: s.array(s.string()) })
      : s.open({ issuer: s.string(), authorization_endpoint: s.string(), token_endpoint: s.string() }),
  )
  const row = (suffix: string): Row => ({
    ...hint,
    id: `get${name}Metadata${suffix}`,
    summary: kind === 'protected-resource' ? 'Read what protects the MCP server' : 'Read how to sign in',
    answers: answered('The metadata.', schema),
  })
  return { [`GET /.well-known/oauth-${kind}`]: row(''), [`GET /.well-known/oauth-${kind}/mcp`]: row('Mcp') }
}

const text = s.optional(s.string())
const form = (schema: ReturnType<typeof s.open>) => ({ 'application/x-www-form-urlencoded': schema })
const client = { client_id: text, client_secret: text }

/** Rows by method and path. */
export const protocols: Rows = {
  ...aiSdk,
  'GET /v1/credits': { ...credits, id: 'getCredits' },
  'GET /mcp': {
    id: 'getMcpServer',
    isPublic: true,
    tag: 'MCP',
    summary: 'Read facts of the MCP server, or its page for browsers',
    errors: 'RpcError',
    answers: {
      200: {
        description: 'Facts, a page, or the stream of the older transport.',
        content: { 'application/json': named('McpServer', s.open({ name: s.string() })), ...html },
      },
    },
    also: [405],
  },
  'POST /mcp': {
    id: 'callMcp',
    tag: 'MCP',
    summary: 'Send a message of JSON-RPC to the MCP server',
    headers: { 'mcp-protocol-version': { description: 'The version that `initialize` has agreed on.' } },
    errors: 'RpcError',
    bodies: { 'application/json': message },
    examples: {
      tools: { summary: 'The list of tools', value: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
      chat: {
        summary: 'A call of a tool',
        value: {
          jsonrpc: '2.0',
          id: 2,
          method: 'tools/call',
          params: { name: 'chat', arguments: { model: 'demo', messages: [{ role: 'user', content: 'Hello!' }] } },
        },
      },
    },
    answers: {
      200: { description: 'The answer to a request.', content: { 'application/json': rpcAnswer } },
      202: { description: 'A notification is accepted.' },
    },
    also: [406],
  },
  ...metadata('protected-resource', 'ProtectedResource'),
  ...metadata('authorization-server', 'AuthorizationServer'),
  'GET /oauth/authorize': {
    ...hint,
    id: 'showConsent',
    summary: 'Show the page on which a user signs in',
    query: {
      client_id: { description: 'The client.' },
      redirect_uri: { description: 'Where the code goes.' },
      response_type: { description: 'Only `code`.' },
      code_challenge: { description: 'PKCE (RFC 7636).' },
      code_challenge_method: { description: 'Only `S256`.' },
      scope: { description: 'Scopes with spaces between them.' },
      state: { description: 'Comes back unchanged.' },
      resource: { description: 'The MCP server (RFC 8707).' },
    },
    answers: page,
    errors: 'ErrorPage',
  },
  'POST /oauth/authorize': {
    ...hint,
    id: 'giveConsent',
    summary: 'Take what the page of the sign-in sends',
    bodies: form(s.open({})),
    also: [401, 403],
    answers: page,
    errors: 'ErrorPage',
  },
  'POST /oauth/token': {
    ...hint,
    id: 'createToken',
    also: [401],
    summary: 'Exchange a code, or a refresh token, for an access token',
    bodies: form(
      s.open({
        grant_type: s.enum('authorization_code', 'refresh_token', 'client_credentials'),
        code: text,
        redirect_uri: text,
        code_verifier: text,
        refresh_token: text,
        scope: text,
        resource: text,
        ...client,
      }),
    ),
    answers: answered(
      'The tokens.',
      named(
        'Tokens',
        s.open({
          access_token: s.string(),
          token_type: constant('Bearer'),
          expires_in: s.integer(),
          refresh_token: text,
          scope: s.string(),
        }),
      ),
    ),
  },
  'POST /oauth/register': {
    ...hint,
    id: 'registerClient',
    isPublic: true,
    summary: 'Register a client',
    bodies: { 'application/json': named('ClientRegistration', registration) },
    examples: {
      program: {
        summary: 'A program of a user',
        value: { client_name: 'My program', redirect_uris: ['http://127.0.0.1/callback'] },
      },
    },
    answers: {
      201: {
        description: 'The client.',
        content: {
          'application/json': named(
            'RegisteredClient',
            s.open({
              client_id: s.string(),
              client_id_issued_at: s.integer(),
              client_secret: text,
              client_name: s.string(),
              redirect_uris: s.array(s.string()),
              grant_types: s.array(s.string()),
              scope: s.string(),
            }),
          ),
        },
      },
    },
  },
  'POST /oauth/revoke': {
    ...hint,
    id: 'revokeToken',
    also: [401],
    summary: 'Revoke a token',
    bodies: form(s.open({ token: s.string(), token_type_hint: text, ...client })),
    answers: answered('The token is not valid any more.', s.open({})),
  },
}
