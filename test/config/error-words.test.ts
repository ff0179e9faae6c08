/** What providers say of a bad or spent account, of a prompt that is too long and of refused content, in their own words. */
import t from 'tap'
import { Registry } from '../../src/app/registry.ts'
import { linkCatalog } from '../../src/config/catalog.ts'
import { loadFiles } from '../../src/config/load.ts'
import type { Credential } from '../../src/core/provider-settings.ts'
import type { GatewayError } from '../../src/lib/error.ts'
import { classifyFailure } from '../../src/routing/outcome.ts'
import { upstreamErrorOf } from '../../src/wire/upstream-error.ts'

const files = await loadFiles('config/gateway.yaml', { env: { GATEWAY_DEMO_URL: 'http://127.0.0.1:9' } })
const turnedOn = {
  ...files,
  providers: files.providers.map(file => ({ ...file, value: { ...file.value, enabled: true } })),
}
const { providers } = linkCatalog(turnedOn, new Registry())
const credential: Credential = { id: 'k', source: 'platform', secret: 'secret-0123456789', fingerprint: 'f' }

function read(id: string, status: number, body: unknown): GatewayError {
  const provider = providers.get(id)!
  const [translator] = provider.wires.values()
  const target = { provider, credential, translator }
  return upstreamErrorOf(target as never, status, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))
}

const error = (message: string, code: unknown = null, type: string | null = null) => ({
  error: { message, type, param: null, code },
})
const google = (code: number, status: string, message: string) => ({ error: { code, message, status } })
const claude = (message: string, type = 'invalid_request_error') => ({ type: 'error', error: { type, message } })

type Row = readonly [provider: string, status: number, body: unknown]

/** The credential rests, and another one or another provider is tried. */
const ACCOUNT: readonly Row[] = [
  [
    'openai',
    429,
    error(
      'You exceeded your current quota, please check your plan and billing details.',
      'insufficient_quota',
      'insufficient_quota',
    ),
  ],
  [
    'openai',
    429,
    error(
      'Your account is not active, please check your billing details on our website.',
      'billing_not_active',
      'billing_not_active',
    ),
  ],
  ['openai', 400, error('Billing hard limit has been reached', 'billing_hard_limit_reached', 'invalid_request_error')],
  [
    'openai',
    429,
    error('Billing hard limit has been reached', 'billing_hard_limit_reached', 'billing_limit_user_error'),
  ],
  [
    'openai',
    401,
    error('The OpenAI account associated with this API key has been deactivated.', 'account_deactivated'),
  ],
  [
    'openai',
    400,
    {
      error: {
        message: 'Your organization must be verified to stream this model.',
        type: 'invalid_request_error',
        param: 'stream',
        code: 'unsupported_value',
      },
    },
  ],
  [
    'azure',
    401,
    error(
      'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription.',
      '401',
    ),
  ],
  [
    'azure',
    429,
    error('You exceeded your current quota, please check your plan and billing details.', 'insufficient_quota'),
  ],
  ['azure', 403, { statusCode: 403, message: 'Out of call volume quota. Quota will be replenished in 12:34:56.' }],
  ['azure-anthropic', 400, claude('Your credit balance is too low to access the Anthropic API.')],
  ['anthropic', 400, claude('This organization has been disabled.')],
  [
    'anthropic',
    400,
    claude('You have reached your specified API usage limits. You will regain access on 2099-01-01 at 00:00 UTC.'),
  ],
  [
    'anthropic',
    400,
    claude('Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.'),
  ],
  [
    'aws-bedrock',
    403,
    {
      message: 'Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided.',
    },
  ],
  ['aws-bedrock', 400, { message: 'Operation not allowed', __type: 'ValidationException' }],
  ['aws-bedrock', 400, { message: 'The security token included in the request is invalid' }],
  [
    'google-vertex',
    403,
    google(
      403,
      'PERMISSION_DENIED',
      'This API method requires billing to be enabled. Please enable billing on project #58906374421.',
    ),
  ],
  [
    'google-vertex',
    400,
    google(400, 'INVALID_ARGUMENT', 'The billing account for the owning project is disabled in state absent'),
  ],
  [
    'google-ai-studio',
    429,
    google(
      429,
      'RESOURCE_EXHAUSTED',
      'Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.',
    ),
  ],
  ['google-ai-studio', 400, google(400, 'INVALID_ARGUMENT', 'API key expired. Please renew the API key.')],
  ['vertex-anthropic', 403, google(403, 'PERMISSION_DENIED', 'This API method requires billing to be enabled.')],
  ['openrouter', 402, error('Insufficient credits. Add more using https://openrouter.ai/settings/credits', 402)],
  [
    'openrouter',
    402,
    error(
      'This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 27342.',
      402,
    ),
  ],
  [
    'openrouter',
    402,
    error(
      'Prompt tokens limit exceeded: 36163 > 29652. To increase, visit https://openrouter.ai/settings/credits',
      402,
    ),
  ],
  [
    'openrouter',
    403,
    error('Key limit exceeded (monthly limit). Manage it using https://openrouter.ai/settings/keys', 403),
  ],
  [
    'openrouter',
    429,
    error('Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day', 429),
  ],
  [
    'groq',
    400,
    error(
      'Organization has been restricted. Please reach out to support if you believe this was in error.',
      'organization_restricted',
      'invalid_request_error',
    ),
  ],
  [
    'groq',
    400,
    error('API access is blocked: the spend limit was reached.', 'blocked_api_access', 'invalid_request_error'),
  ],
  [
    'together',
    402,
    error(
      'Credit limit exceeded. Please navigate to https://api.together.xyz/settings/billing to add credit or upgrade your plan.',
      null,
      'credit_limit',
    ),
  ],
  ['together', 400, error('The limit of this account is used up.', null, 'credit_limit')],
  [
    'fireworks',
    412,
    error(
      'Account acme is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices. Please go to https://fireworks.ai/account/billing',
      'PRECONDITION_FAILED',
      'error',
    ),
  ],
  ['deepinfra', 402, { detail: { error: 'inference prohibited, please add a payment method' } }],
  ['deepinfra', 400, { detail: { error: 'inference prohibited, please add a payment method' } }],
  [
    'cohere',
    402,
    { message: 'Please add or update your payment method at https://dashboard.cohere.com/billing to continue' },
  ],
  ['cohere', 429, { message: 'You are using a Trial key, which is limited to 1000 API calls / month.' }],
  [
    'moonshot',
    429,
    error(
      'Your account org-1 <ak-2> is suspended due to insufficient balance, please recharge your account or check your plan and billing details',
      null,
      'exceeded_current_quota_error',
    ),
  ],
  [
    'moonshot',
    403,
    error(
      'Your account <ak-2> is not active, organization <org-1> exceeded current quota, please check your plan and billing details',
      null,
      'exceeded_current_quota_error',
    ),
  ],
  [
    'moonshot',
    403,
    claude(
      "You've reached your usage limit for this billing cycle. Your quota will be refreshed in the next cycle.",
      'permission_error',
    ),
  ],
  [
    'alibaba',
    400,
    error('Access denied, please make sure your account is in good standing.', 'Arrearage', 'Arrearage'),
  ],
  ['alibaba', 429, error('The prepaid bill is overdue.', 'PrepaidBillOverdue', 'PrepaidBillOverdue')],
  ['alibaba', 403, error('The free tier of the model has been exhausted.', 'AllocationQuota.FreeTierOnly')],
  ['zai', 429, error('Insufficient balance or no resource package. Please recharge.', '1113')],
  ['zai', 429, error('余额不足或无可用资源包,请充值。', '1113')],
  ['zai', 429, claude('Insufficient balance or no resource package. Please recharge.', '1113')],
  ['zai', 429, error('Usage limit reached for 5 hour. Your limit will reset at 2099-01-01 23:11:34', '1308')],
  ['minimax', 500, claude('insufficient balance (1008)', 'api_error')],
  ['minimax', 429, error('insufficient balance (1008)', null, 'insufficient_balance_error')],
  ['minimax', 400, { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }],
  ['minimax', 400, { base_resp: { status_code: 2049, status_msg: 'invalid api key' } }],
  ['deepseek', 402, error('Insufficient Balance', 'invalid_request_error', 'unknown_error')],
  ['deepseek', 400, error('Insufficient Balance', 'invalid_request_error', 'unknown_error')],
  ['mistral', 401, { detail: 'Inactive subscription or usage limit reached' }],
  [
    'xai',
    400,
    {
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: xa***yz. You can obtain an API key from https://console.x.ai.',
    },
  ],
  [
    'xai',
    429,
    {
      code: 'Some resource has been exhausted',
      error: 'Your team 1 has either used all available credits or reached its monthly spending limit.',
    },
  ],
  [
    'perplexity',
    401,
    error('You exceeded your current quota, please check your plan and billing details.', 401, 'insufficient_quota'),
  ],
  [
    'huggingface',
    402,
    { error: 'You have exceeded your monthly included credits for Inference Providers. Subscribe to PRO to get more.' },
  ],
  ['novita', 403, { code: 403, reason: 'NOT_ENOUGH_BALANCE', message: 'not enough balance' }],
  ['nvidia', 402, { detail: "Account 'x': Cloud credits expired - Please contact NVIDIA representatives" }],
  ['ollama-cloud', 429, { error: "you've reached your weekly usage limit, please upgrade to continue" }],
  [
    'bytedance',
    429,
    error('Your account has reached the set inference limit for the model.', 'SetLimitExceeded', 'TooManyRequests'),
  ],
  [
    'bytedance',
    403,
    error('The request failed because your account has an overdue balance.', 'AccountOverdueError', 'Forbidden'),
  ],
  ['jina', 402, { detail: 'Insufficient account balance' }],
]

/** The caller gets a 400 with `context_length_exceeded`. */
const TOO_LONG: readonly Row[] = [
  [
    'openai',
    400,
    error(
      'Your input exceeds the context window of this model. Please adjust your input and try again.',
      'context_length_exceeded',
    ),
  ],
  [
    'azure',
    400,
    error(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens.",
      'context_length_exceeded',
    ),
  ],
  ['anthropic', 400, claude('prompt is too long: 213462 tokens > 200000 maximum')],
  [
    'anthropic',
    400,
    claude(
      'input length and `max_tokens` exceed context limit: 198000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
    ),
  ],
  ['azure-anthropic', 400, claude('input length and `max_tokens` exceed context limit: 198000 + 20000 > 200000')],
  ['vertex-anthropic', 400, claude('input length and `max_tokens` exceed context limit: 198000 + 20000 > 200000')],
  ['aws-bedrock', 400, { message: 'Input is too long for requested model.' }],
  [
    'aws-bedrock',
    400,
    {
      message:
        'The model returned the following errors: input length and `max_tokens` exceed context limit: 198000 + 20000 > 200000',
    },
  ],
  [
    'google-ai-studio',
    400,
    google(
      400,
      'INVALID_ARGUMENT',
      'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).',
    ),
  ],
  [
    'google-vertex',
    400,
    google(
      400,
      'INVALID_ARGUMENT',
      'Unable to submit request because the input token count is 1050000 but model only supports up to 1048576. Reduce the input token count and try again.',
    ),
  ],
  [
    'openrouter',
    400,
    error("This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens.", 400),
  ],
  [
    'vllm',
    400,
    {
      object: 'error',
      message:
        'The decoder prompt (length 21535) is longer than the maximum model length of 16384. Make sure that `max_model_len` is no smaller than the number of text tokens.',
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
  ],
  [
    'vllm',
    500,
    {
      detail:
        '[address=0.0.0.0:43769, pid=1065] The decoder prompt (length 66501) is longer than the maximum model length of 65536.',
    },
  ],
  [
    'vllm',
    400,
    {
      object: 'error',
      message: "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
      type: 'BadRequestError',
      code: 400,
    },
  ],
  [
    'vllm',
    400,
    {
      object: 'error',
      message: 'max_tokens must be at least 1, got -808.',
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
  ],
  ['groq', 400, error('Please reduce the length of the messages or completion.', 'context_length_exceeded')],
  [
    'together',
    422,
    error(
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and 512 `max_new_tokens`',
    ),
  ],
  ['fireworks', 400, error('The prompt is too long: 9000, model maximum context length: 8192')],
  ['deepinfra', 500, { error: { message: 'Requested input length 99009 exceeds maximum input length 8192' } }],
  [
    'cohere',
    400,
    { message: 'too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.' },
  ],
  [
    'cohere',
    400,
    { message: 'too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.' },
  ],
  [
    'moonshot',
    400,
    error(
      'Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)',
      null,
      'invalid_request_error',
    ),
  ],
  [
    'alibaba',
    400,
    error(
      '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]',
      'invalid_parameter_error',
    ),
  ],
  ['zai', 400, error('Prompt exceeds max length', '1261')],
  ['minimax', 400, claude('invalid params, context window exceeds limit (2013)')],
  ['minimax', 500, claude('invalid params, context window exceeds limit (2013)', 'api_error')],
  [
    'mistral',
    400,
    {
      object: 'error',
      message: 'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_error',
      code: '3051',
    },
  ],
  [
    'deepseek',
    400,
    error(
      "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens.",
      'invalid_request_error',
    ),
  ],
  [
    'xai',
    400,
    {
      code: 'Client specified an invalid argument',
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
  ],
  [
    'huggingface',
    422,
    {
      error: 'Input validation error: `inputs` must have less than 4096 tokens. Given: 5000',
      error_type: 'validation',
    },
  ],
  [
    'cerebras',
    400,
    {
      message: 'Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192',
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
    },
  ],
  ['ollama', 400, { error: 'prompt too long; exceeded max context length by 4 tokens' }],
  ['ollama', 500, { error: 'the input length exceeds the context length' }],
  [
    'lmstudio',
    400,
    {
      error:
        'The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length',
    },
  ],
  [
    'voyage',
    400,
    {
      detail:
        "Request to model 'voyage-3' failed. The max allowed tokens per submitted batch is 120000. Your batch has 125000 tokens after truncation.",
    },
  ],
]

/** The caller gets a 400 with `content_filter`. */
const REFUSED: readonly Row[] = [
  [
    'openrouter',
    403,
    error(
      'openai/gpt-4o requires moderation on OpenAI. Your input was flagged for "violence". No credits were charged.',
      403,
    ),
  ],
  ['xai', 403, { code: 'permission-denied', error: 'Content violates usage guidelines. ' }],
  [
    'xai',
    403,
    {
      code: 'The caller does not have permission to execute the specified operation',
      error:
        'Content violates usage guidelines. Team: t, API key ID: k, Model: grok-4-0709, Failed check: SAFETY_CHECK_TYPE_BIO',
    },
  ],
  [
    'azure',
    400,
    error(
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      'content_filter',
    ),
  ],
  [
    'bytedance',
    400,
    error(
      'The request failed because the input text may contain sensitive information.',
      'InputTextSensitiveContentDetected',
      'BadRequest',
    ),
  ],
  ['zai', 400, error('System detected potentially unsafe or sensitive content in input or generation', '1301')],
  ['minimax', 400, { base_resp: { status_code: 1026, status_msg: 'input new_sensitive' } }],
]

/** The credential pauses: its account allows no more tokens a minute. */
const THROTTLED: readonly Row[] = [
  [
    'groq',
    413,
    error(
      'Request too large for model `llama-3.3-70b-versatile` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again.',
      'rate_limit_exceeded',
      'tokens',
    ),
  ],
  [
    'groq',
    429,
    error(
      'Rate limit reached for model `llama-3.3-70b-versatile` on tokens per day (TPD): Limit 100000. Please try again in 9m38.016s.',
      'rate_limit_exceeded',
      'tokens',
    ),
  ],
  [
    'openai',
    429,
    error(
      'Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 30601.',
      'rate_limit_exceeded',
      'tokens',
    ),
  ],
  ['minimax', 200, { base_resp: { status_code: 1002, status_msg: 'rate limit' } }],
]

const says = ([id, status, body]: Row) => `${id} ${status} ${JSON.stringify(body).slice(0, 120)}`

t.test('a bad or spent account rests its credential and is never the fault of the caller', async t => {
  for (const row of ACCOUNT) {
    const error = read(...row)
    t.match(
      error,
      { failover: true, param: null, code: /^upstream_(?:credential|quota)$/, upstreamStatus: Number },
      says(row),
    )
    t.equal(classifyFailure(error), 'credential', says(row))
  }
})

t.test('an account that names a date or a span rests as long', async t => {
  const day = 86_400_000
  for (const row of ACCOUNT.filter(row => JSON.stringify(row).includes('2099'))) {
    t.equal(read(...row).retryAfterMs, 32 * day, says(row))
  }
  t.equal(read(...THROTTLED[1]!).retryAfterMs, 578_016)
})

t.test('a prompt that is too long is named so, in whatever words and with whatever status', async t => {
  for (const row of TOO_LONG) {
    t.match(read(...row), { status: 400, code: 'context_length_exceeded', failover: false }, says(row))
  }
})

t.test('refused content is the fault of the caller, and no credential rests for it', async t => {
  for (const row of REFUSED) t.match(read(...row), { status: 400, code: 'content_filter', failover: false }, says(row))
})

t.test('a limit of an account on tokens a minute is a throttle', async t => {
  for (const row of THROTTLED) t.equal(classifyFailure(read(...row)), 'throttle', says(row))
})

t.test('words that a caller wrote mean nothing in quotes', async t => {
  for (const [id, { errorPhrases = [] }] of providers) {
    for (const [phrase] of errorPhrases) {
      const error = read(id, 400, { error: { message: `tools.0.name: "${phrase}" is not allowed` } })
      t.match(error, { failover: false, status: 400 }, `${id} ${phrase}`)
    }
  }
})
