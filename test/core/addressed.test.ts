/** Options that are addressed to one provider: which of them count, for whom, and that no other costs anything. */
import t from 'tap'
import type { ChatRequest } from '../../src/core/chat-request.ts'
import type { Target } from '../../src/core/translator.ts'
import { addressed } from '../../src/operations/chat/addressed.ts'
import { deepFreeze, target } from '../plugins/wire-kit.ts'

type Json = Record<string, unknown>
const plain: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }
const able: Target['mapping']['supports'] = new Set(['reasoning', 'effort', 'verbosity'])
const to = (id: string, supports = able): Target => {
  const made = target()
  return { ...made, provider: { ...made.provider, id }, mapping: { ...made.mapping, supports } }
}
const sent = (provider_options: Json, at: Target, more: Partial<ChatRequest> = {}) => {
  const {
    model: _m,
    messages: _s,
    ...rest
  } = addressed(deepFreeze({ ...plain, ...more, provider_options }) as ChatRequest, at)
  return rest
}

const rows: [namespace: string, options: Json, provider: string, becomes: Json][] = [
  [
    'openai',
    { reasoningEffort: 'high', textVerbosity: 'low' },
    'openai',
    { reasoning_effort: 'high', verbosity: 'low' },
  ],
  [
    'openai',
    { user: 'u', promptCacheKey: 'k', promptCacheRetention: '24h' },
    'openai',
    { user: 'u', prompt_cache_key: 'k', prompt_cache_retention: '24h' },
  ],
  ['anthropic', { thinking: { type: 'enabled', budgetTokens: 99 } }, 'anthropic', { reasoning: { max_tokens: 99 } }],
  [
    'anthropic',
    { thinking: { type: 'disabled' }, metadata: { userId: 'u' } },
    'anthropic',
    { reasoning_effort: 'none', user: 'u' },
  ],
  ['google', { thinkingConfig: { thinkingBudget: 99 } }, 'google-vertex', { reasoning: { max_tokens: 99 } }],
  ['google', { thinkingConfig: { thinkingLevel: 'low' } }, 'google-ai-studio', { reasoning_effort: 'low' }],
  ['openai', { reasoningEffort: 'high' }, 'anthropic', {}],
  ['open', { reasoningEffort: 'high' }, 'openai', {}],
  ['bedrock', { reasoningEffort: 'high' }, 'aws-bedrock', { reasoning_effort: 'high' }],
  ['ex', { reasoningEffort: 'high' }, 'google-vertex', {}],
  ['openai', { reasoningEffort: 'ultra', user: 1, textVerbosity: {} }, 'openai', {}],
  ['anthropic', { thinking: { type: 'enabled', budgetTokens: -1 } }, 'anthropic', {}],
  ['anthropic', { thinking: { type: 'enabled', budgetTokens: 1e300 } }, 'anthropic', {}],
]

t.test('options reach the provider that their namespace names, and no other', async t => {
  for (const [namespace, options, provider, becomes] of rows) {
    t.strictSame(
      sent({ [namespace]: options }, to(provider)),
      becomes,
      `${namespace} ${JSON.stringify(options)} at ${provider}`,
    )
  }
  t.strictSame(
    sent({ openai: { reasoningEffort: 'high' } }, to('openai', new Set())),
    {},
    'of a model that cannot reason',
  )
  t.strictSame(
    sent({ anthropic: { thinking: { budgetTokens: 9 } } }, to('anthropic'), { reasoning_effort: 'low' }),
    { reasoning: { max_tokens: 9 } },
    'in place of an effort',
  )
})

t.test('what would cost the operator something that no price covers reaches no provider', async t => {
  const costly: Json = {
    store: true,
    previousResponseId: 'resp_1',
    conversation: 'conv_1',
    background: true,
    serviceTier: 'priority',
    service_tier: 'priority',
    container: { skills: [{ type: 'anthropic', skillId: 'pptx' }] },
    mcpServers: [{ type: 'url', name: 'a', url: 'https://a.example' }],
    contextManagement: {},
    speed: 'fast',
    cachedContent: 'cachedContents/1',
    fallbacks: ['x'],
    model: 'dearest',
    n: 100,
    max_tokens: 1e9,
    tools: [{ type: 'code_interpreter' }],
    extraBody: { store: true },
    __proto__: { store: true },
    constructor: 'user',
    toString: 'user',
  }
  const own = JSON.parse(JSON.stringify(costly).replace(/\}$/, ',"__proto__":{"user":"x"}}')) as Json
  for (const provider of ['openai', 'anthropic', 'google-vertex', 'aws-bedrock', 'xai']) {
    const namespace = provider.split('-')[0]!
    t.strictSame(sent({ [namespace]: costly, [provider]: own }, to(provider)), {}, provider)
  }
})
