/** What the chat completions API refuses, so that a translator which sends it fails its test. */
import { knows, Refusal } from './rules.mjs'

const words = text => new Set(text.split(/\s+/))

const fields = words(
  `model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
  metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
  prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier
  stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options`,
)
/** The three reasoning fields are no part of the API, but compatible providers want them back. */
const messageFields = words(
  'role content name refusal tool_calls tool_call_id function_call audio reasoning reasoning_content reasoning_details',
)
const partFields = {
  text: words('type text prompt_cache_breakpoint'),
  image_url: words('type image_url prompt_cache_breakpoint'),
  input_audio: words('type input_audio prompt_cache_breakpoint'),
  file: words('type file prompt_cache_breakpoint'),
  refusal: words('type refusal'),
}
const functionFields = words('name description parameters strict')
const roles = words('developer system user assistant tool function')
const choices = {
  reasoning_effort: words('none minimal low medium high xhigh max'),
  verbosity: words('low medium high'),
  service_tier: words('auto default flex scale priority'),
  prompt_cache_retention: words('in_memory 24h'),
}
const ranges = {
  temperature: [0, 2],
  top_p: [0, 1],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
  top_logprobs: [0, 20],
  n: [1, 128],
}

function refuse(message, param = null, code = null, status = 400, type = 'invalid_request_error') {
  throw new Refusal(status, { error: { message, type, param, code } })
}

function allow(object, allowed, at) {
  for (const name of Object.keys(object)) {
    if (!allowed.has(name)) refuse(`Unknown parameter: '${at}${name}'.`, `${at}${name}`, 'unknown_parameter')
  }
}

/** @param {Record<string, string | undefined>} headers @param {any} body @param {string[]} keys */
export function check(headers, body, keys) {
  if (!knows(keys, /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1])) {
    refuse('Incorrect API key provided.', null, 'invalid_api_key', 401)
  }
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) refuse('The content type must be application/json.')
  if (typeof body !== 'object' || body === null) refuse('We could not parse the JSON body of your request.')
  allow(body, fields, '')
  if (typeof body.model !== 'string') refuse('you must provide a model parameter', 'model')
  if (!Array.isArray(body.messages) || body.messages.length === 0) {
    refuse("Invalid 'messages': empty array.", 'messages', 'empty_array')
  }
  checkParameters(body)
  checkReasoningModel(body)
  checkTools(body)
  body.messages.forEach(checkMessage)
  checkToolResults(body.messages)
}

function checkParameters(body) {
  for (const [name, allowed] of Object.entries(choices)) {
    if (body[name] != null && !allowed.has(body[name])) refuse(`Invalid value: '${body[name]}'.`, name, 'invalid_value')
  }
  for (const [name, [low, high]] of Object.entries(ranges)) {
    if (body[name] != null && !(body[name] >= low && body[name] <= high)) {
      refuse(`Invalid '${name}': expected ${low} to ${high}.`, name, 'invalid_value')
    }
  }
  if (body.stream_options != null && body.stream !== true) {
    refuse("'stream_options' is only allowed when 'stream' is enabled.", 'stream_options')
  }
  if (body.response_format?.type === 'json_object' && !/json/i.test(JSON.stringify(body.messages)))
    refuse("'messages' must contain the word 'json' in some form.", 'messages')
  if (Array.isArray(body.stop) && body.stop.length > 4) refuse("Invalid 'stop': at most 4.", 'stop')
  if (body.top_logprobs != null && body.logprobs !== true) refuse("'top_logprobs' needs 'logprobs'.", 'top_logprobs')
}

function checkReasoningModel(body) {
  const gpt = /^gpt-(\d+)(\.\d+)?(-.+)?$/.exec(body.model)
  if (!/^o\d+(-|$)/.test(body.model) && !(gpt && Number(gpt[1]) >= 5 && !gpt[3]?.startsWith('-chat'))) return
  const message = name => `Unsupported parameter: '${name}' is not supported with this model.`
  if (body.max_tokens != null) {
    refuse(`${message('max_tokens')} Use 'max_completion_tokens' instead.`, 'max_tokens', 'unsupported_parameter')
  }
  const samples = gpt?.[2] !== undefined && body.reasoning_effort === 'none'
  for (const name of ['temperature', 'top_p', 'logprobs']) {
    if (body[name] != null && !samples) refuse(message(name), name)
  }
  for (const name of ['presence_penalty', 'frequency_penalty', 'logit_bias', 'stop']) {
    if (body[name] != null) refuse(message(name), name, 'unsupported_parameter')
  }
}

function checkTools({ tools, tool_choice, parallel_tool_calls }) {
  if (tools == null) {
    if (tool_choice != null) refuse("'tool_choice' is only allowed when 'tools' are specified.", 'tool_choice')
    if (parallel_tool_calls != null) refuse("'parallel_tool_calls' needs 'tools'.", 'parallel_tool_calls')
    return
  }
  if (tools.length === 0) refuse("Invalid 'tools': empty array.", 'tools', 'empty_array')
  tools.forEach((tool, i) => {
    if (tool.type === 'custom') {
      allow(tool, words('type custom'), `tools[${i}].`)
      allow(tool.custom, words('name description format'), `tools[${i}].custom.`)
      return
    }
    if (tool.type !== 'function') refuse(`Invalid value: '${tool.type}'.`, `tools[${i}].type`, 'invalid_value')
    allow(tool, new Set(['type', 'function']), `tools[${i}].`)
    allow(tool.function, functionFields, `tools[${i}].function.`)
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(tool.function.name)) refuse('Invalid name.', `tools[${i}].function.name`)
  })
}

function checkMessage(message, i) {
  const at = `messages[${i}].`
  if (!roles.has(message.role)) refuse(`Invalid value: '${message.role}'.`, `${at}role`, 'invalid_value')
  allow(message, messageFields, at)
  const isCall = message.role === 'assistant' && (message.tool_calls ?? message.function_call) != null
  if (message.content == null && !isCall) refuse(`Invalid value for 'content': got null.`, `${at}content`)
  if (message.tool_calls?.length === 0) refuse("Invalid 'tool_calls': empty array.", `${at}tool_calls`, 'empty_array')
  if (typeof message.content === 'string' || message.content == null) return
  message.content.forEach((part, j) => {
    const allowed = partFields[part.type]
    if (!allowed) refuse(`Invalid value: '${part.type}'.`, `${at}content[${j}].type`, 'invalid_value')
    allow(part, allowed, `${at}content[${j}].`)
    if (message.role === 'tool' && part.type !== 'text') refuse('Only text is allowed here.', `${at}content[${j}]`)
  })
}

/** Each call is answered by one tool message before any other role, and nothing else is. */
function checkToolResults(messages) {
  let open = new Set()
  messages.forEach((message, i) => {
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id)) {
        refuse(
          "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
          `messages[${i}]`,
        )
      }
      return
    }
    if (open.size > 0) unanswered(open, i)
    const ids = (message.tool_calls ?? []).map(call => call.id)
    const long = ids.find(id => id.length > 40)
    if (long) refuse(`Invalid 'messages[${i}].tool_calls[0].id': string too long.`, `messages[${i}].tool_calls[0].id`)
    open = new Set(ids)
  })
  if (open.size > 0) unanswered(open, messages.length)
}

function unanswered(open, i) {
  const ids = [...open].join(', ')
  refuse(
    `An assistant message with 'tool_calls' must be followed by tool messages: ${ids} have none.`,
    `messages[${i}]`,
  )
}
