/** Error bodies as providers send them, and what each means; ids are of docs/contributing/edge-cases.md#errors. */

export interface Verdict {
  status: number
  code: string | null
  failover: boolean
  param?: string | null
  message?: string
}
type Dialect = readonly [name: string, status: number, body: unknown, verdict: Verdict]

const caller = (code: string | null, more: Partial<Verdict> = {}): Verdict => ({
  status: 400,
  code,
  failover: false,
  param: null,
  ...more,
})
const provider = (status: number, code: string, more: Partial<Verdict> = {}): Verdict => ({
  status,
  code,
  failover: true,
  param: null,
  ...more,
})
const credential = provider(502, 'upstream_credential')
const failed = provider(502, 'upstream_error')
const overloaded = provider(503, 'upstream_overloaded')
const throttled = provider(503, 'upstream_rate_limited')
const quota = provider(503, 'upstream_quota')
const timedOut = provider(504, 'timeout')
const tooLong = caller('context_length_exceeded')
const filtered = caller('content_filter')
const said = (message: string, more: Partial<Verdict> = {}) => caller(null, { message, ...more })
const error = (message: string, code: unknown = null, more: object = {}) => ({ error: { message, code, ...more } })

/** Codes of providers that have their own (`error_codes` of a manifest). */
export const errorCodes: ReadonlyMap<string, string> = new Map([
  ['1113', 'insufficient_quota'],
  ['1261', 'context_length_exceeded'],
  ...['1301', '1026', '1027'].map(code => [code, 'content_filter'] as const),
])

/** Everything is said with status 400, which passes message, code and parameter on. */
const forms: Dialect[] = [
  ['E5 string code', 400, error('no', 'bad_value', { param: 'n' }), caller('bad_value', { param: 'n', message: 'no' })],
  ['E5 number code', 400, error('no', 1214), caller('1214', { message: 'no' })],
  ['E5 null code', 400, error('no'), said('no')],
  ['E5 error is a string', 400, { error: 'no', code: 'x' }, caller('x', { message: 'no' })],
  ['E5 error is an empty string', 400, { error: '', message: 'no' }, said('no')],
  ['E5 error without a message', 400, { error: { status: 'X' } }, said('{"status":"X"}')],
  ['E5 message is an object', 400, { object: 'error', message: { detail: ['a'] } }, said('{"detail":["a"]}')],
  ['E5 message of the error is a list', 400, { error: { message: ['a', 'b'] } }, said('["a","b"]')],
  ['E5 detail is a string', 400, { detail: 'no' }, said('no')],
  ['E5 detail is a list', 400, { detail: [{ loc: ['n'], msg: 'no' }] }, said('[{"loc":["n"],"msg":"no"}]')],
  ['E5 only a message', 400, { message: 'no' }, said('no')],
  ['E5 a list of one error', 400, [error('no', 400)], caller('400', { message: 'no' })],
  ['E5 flat', 400, { message: 'no', type: 't', param: 'p', code: 'c' }, caller('c', { param: 'p', message: 'no' })],
  [
    'E5 object "error"',
    400,
    { object: 'error', message: 'no', param: 'top_p', code: 40303 },
    said('no', { code: '40303', param: 'top_p' }),
  ],
  ['E5 err_msg', 400, { err_code: 'BAD', err_msg: 'no' }, caller('BAD', { message: 'no' })],
  ['E5 msg', 400, { code: 1200, msg: 'no' }, caller('1200', { message: 'no' })],
  ['E5 base_resp', 400, { base_resp: { status_code: 2013, status_msg: 'no' } }, caller('2013', { message: 'no' })],
  ['E5 plain text', 400, 'upstream connect error', said('upstream connect error')],
  ['E5 HTML', 400, '<html><body>secret page</body></html>', said('the provider answered with status 400')],
  ['E5 XML', 400, '<?xml version="1.0"?><Error/>', said('the provider answered with status 400')],
  ['E5 a long text', 400, 'x'.repeat(600), said('the provider answered with status 400')],
  ['E5 nothing', 400, '', said('the provider answered with status 400')],
  ['E5 an empty list', 400, [], said('the provider answered with status 400')],
  [
    'E5 a list that is too deep',
    400,
    '['.repeat(30_000) + ']'.repeat(30_000),
    said('the provider answered with status 400'),
  ],
  ['E5 null', 400, null, said('the provider answered with status 400')],
]

const meanings: Dialect[] = [
  ['422', 422, error('no', 'x'), caller('x')],
  ['413', 413, error('no', 'x'), caller('request_too_large', { status: 413 })],
  ['415', 415, error('no'), caller('unsupported_media_type', { status: 415 })],
  ['401', 401, error('no'), credential],
  ['402', 402, error('no'), credential],
  ['403', 403, error('no'), credential],
  ['404', 404, error('no access'), provider(404, 'not_found')],
  ['408', 408, error('slow'), timedOut],
  ['409', 409, error('busy'), failed],
  ['425', 425, error('early'), failed],
  ['429', 429, error('slow down', 'rate_limit_exceeded'), throttled],
  ['500', 500, error('oops'), failed],
  ['503', 503, error('busy'), overloaded],
  ['504', 504, error('slow'), timedOut],
  ['E6 insufficient_quota', 429, error('no', 'insufficient_quota'), quota],
  ['E6 quota as type', 429, error('no', null, { type: 'exceeded_current_quota_error' }), quota],
  ['E6 contract_spend_limit_reached', 429, error('no', 'contract_spend_limit_reached'), quota],
  ['E6 1113', 429, error('no', '1113'), quota],
  ['E6 a number that only holds 1113', 429, error('no', '21113'), throttled],
  ['E7 API_KEY_INVALID', 400, error('API key not valid.', 'API_KEY_INVALID'), credential],
  ['E7 invalid api key', 400, error('Invalid API key'), credential],
  ['E7 credit', 400, error('Your credit balance is too low'), credential],
  ['E7 403 credit', 403, error('out of credits'), credential],
  ['E12 529', 529, error('Overloaded'), overloaded],
  ['E12 520', 520, '<html>', failed],
  ['E12 522', 522, '<html>', failed],
  ['E12 524', 524, '<html>', timedOut],
  ['E12 498', 498, error('capacity'), failed],
  ['E12 499', 499, error('cancelled'), failed],
  ['E12 424', 424, { message: 'model error' }, failed],
  [
    'E7 a field of the caller that speaks of billing',
    400,
    error("Invalid schema for function 'get_billing_info'", 'invalid_schema', { param: 'tools[0]' }),
    caller('invalid_schema', { param: 'tools[0]' }),
  ],
  ['E7 a name in quotes', 400, error("tool 'authentication' isn't known; 'billing' isn't"), caller(null)],
  ['E14 context_length_exceeded', 400, error('no', 'context_length_exceeded'), tooLong],
  ['E14 exceed_context_size_error', 400, error('no', 400, { type: 'exceed_context_size_error' }), tooLong],
  ['E14 prompt is too long', 400, error('prompt is too long: 9 tokens > 8 maximum'), tooLong],
  ['E14 Input is too long', 400, { message: 'Input is too long for requested model.' }, tooLong],
  ['E14 maximum context length', 422, error("This model's maximum context length is 8"), tooLong],
  ['E14 1261', 400, error('no', 1261), tooLong],
  ['E14 model_context_window_exceeded', 400, error('no', 'model_context_window_exceeded'), tooLong],
  ['E15 content_filter', 400, error('no', 'content_filter'), filtered],
  ['E15 content_policy_violation', 400, error('no', 'content_policy_violation'), filtered],
  ['E15 moderation_blocked', 400, error('no', 'moderation_blocked'), filtered],
  ['E15 data_inspection_failed', 400, error('no', 'data_inspection_failed'), filtered],
  ['E15 1301', 400, error('no', '1301'), filtered],
  ['E15 1026', 400, error('no', 1026), filtered],
  ['E15 1027', 422, error('no', 1027), filtered],
  ['E15 PROHIBITED_CONTENT', 400, error('PROHIBITED_CONTENT'), filtered],
]

export const dialects: readonly Dialect[] = [...forms, ...meanings]

/** E13: what a provider says, with the secret `sk-live-0123456789abcdef` in use, and what may be shown of it. */
const key = 'sk-live-0123456789abcdef'
export const inUse = key
export const echoes: readonly (readonly [said: string, shown: string])[] = [
  [`Incorrect API key provided: ${key}.`, 'Incorrect API key provided: ***.'],
  ['Incorrect API key provided: sk-proj-abcd1234*****wxyz.', 'Incorrect API key provided: ***.'],
  ['API key not valid: AIzaSyA1234567890abcdefghijk', 'API key not valid: ***'],
  ['Bearer abc.def.ghi was refused', 'Bearer *** was refused'],
  ['key gsk_0123456789 and xai-0123456789', 'key *** and ***'],
  ['mgw_0123456789abcdef', '***'],
  ['risk-assessment of the task-force is fine', 'risk-assessment of the task-force is fine'],
]
