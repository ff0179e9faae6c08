/** What Mistral's API refuses, so that a translator which sends it fails its test. */
import { signatureOf } from './answer.mjs'
import { knows, Refusal } from './rules.mjs'

const words = text => new Set(text.split(/\s+/))

const fields = words(
  `model messages temperature top_p max_tokens stream stop random_seed metadata response_format tools tool_choice
  presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode reasoning_effort guardrails
  safe_prompt service_tier prompt_cache_key document_image_limit document_page_limit`,
)
const messageFields = {
  system: words('role content'),
  user: words('role content'),
  assistant: words('role content tool_calls prefix'),
  tool: words('role content name tool_call_id'),
}
const chunkFields = {
  text: words('type text'),
  image_url: words('type image_url'),
  document_url: words('type document_url document_name'),
  input_audio: words('type input_audio'),
  file: words('type file_id'),
  thinking: words('type thinking signature closed'),
  reference: words('type reference_ids'),
}
const chunksOf = {
  system: words('text thinking'),
  user: words('text image_url document_url input_audio file reference'),
  assistant: words('text thinking reference'),
  tool: words('text image_url document_url input_audio file reference'),
}
/** Who may speak after whom. */
const followers = {
  system: words('system user assistant'),
  user: words('system user assistant'),
  assistant: words('user assistant tool'),
  tool: words('assistant tool'),
}
const choices = {
  reasoning_effort: words('none minimal low medium high xhigh'),
  prompt_mode: words('reasoning'),
  service_tier: words('auto standard_only'),
}
const ranges = {
  temperature: [0, 1.5],
  top_p: [0, 1],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
}

/** Its errors have no `error`. */
class MistralRefusal extends Refusal {
  constructor(status, body) {
    const { message } = body
    super(status, { error: { message: typeof message === 'string' ? message : JSON.stringify(body) } })
    this.body = body
  }
}

function refuse(message, type = 'invalid_request_error', code = null, status = 400) {
  throw new MistralRefusal(status, { object: 'error', message, type, param: null, code })
}
const disorder = message => refuse(message, 'invalid_request_message_order', '3230')

/** A validator's finding. */
function invalid(type, loc, msg) {
  refuse({ detail: [{ type, loc: ['body', ...loc], msg }] }, 'invalid_request_message_error', null, 422)
}

function allow(object, allowed, loc) {
  for (const name of Object.keys(object)) {
    if (!allowed.has(name)) invalid('extra_forbidden', [...loc, name], 'Extra inputs are not permitted')
  }
}

/** @param {Record<string, string | undefined>} headers @param {any} body @param {string[]} keys */
export function check(headers, body, keys) {
  if (!knows(keys, /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1])) {
    throw new MistralRefusal(401, { detail: 'Unauthorized' })
  }
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) refuse('The content type must be application/json.')
  if (typeof body !== 'object' || body === null) invalid('json_invalid', [], 'JSON decode error')
  allow(body, fields, [])
  if (typeof body.model !== 'string') invalid('missing', ['model'], 'Field required')
  if (!Array.isArray(body.messages)) invalid('missing', ['messages'], 'Field required')
  checkParameters(body)
  checkTools(body)
  body.messages.forEach((message, i) => {
    checkMessage(message, ['messages', i], i === body.messages.length - 1)
  })
  checkOrder(body.messages)
  checkToolResults(body.messages)
}

function checkParameters(body) {
  for (const [name, allowed] of Object.entries(choices)) {
    if (body[name] != null && !allowed.has(body[name])) invalid('enum', [name], `Input should be one of those: ${name}`)
  }
  for (const [name, [low, high]] of Object.entries(ranges)) {
    if (body[name] != null && !(body[name] >= low && body[name] <= high)) {
      invalid('out_of_range', [name], `Input should be from ${low} to ${high}`)
    }
  }
  if (body.prompt_mode != null && !/magistral/.test(body.model)) refuse('prompt_mode is not available for this model.')
  if (body.response_format?.type === 'json_schema') {
    const at = ['response_format', 'json_schema']
    allow(body.response_format.json_schema, words('name description schema strict'), at)
  }
}

function checkTools({ tools, tool_choice }) {
  if (tools == null) {
    if (tool_choice != null) refuse('Tool choice needs tools.')
    return
  }
  if (tools.length === 0) refuse('Tools must not be empty.')
  tools.forEach((tool, i) => {
    allow(tool, words('type function'), ['tools', i])
    allow(tool.function, words('name description parameters strict'), ['tools', i, 'function'])
    if (typeof tool.function.parameters !== 'object')
      invalid('missing', ['tools', i, 'function', 'parameters'], 'Field required')
    checkName(tool.function.name)
  })
  if (typeof tool_choice === 'string' && !words('auto none any required').has(tool_choice)) {
    invalid('enum', ['tool_choice'], 'Input should be auto, none, any or required')
  }
  if (typeof tool_choice === 'object' && !tools.some(tool => tool.function.name === tool_choice.function.name)) {
    refuse('The chosen tool is not among the tools.')
  }
}

function checkName(name) {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    refuse(
      `Function name was ${name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.`,
    )
  }
}

function checkId(id) {
  if (!/^[a-zA-Z0-9]{9}$/.test(id)) {
    refuse(`Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`, 'invalid_function_call', '3280')
  }
}

function checkMessage(message, loc, last) {
  const { role, content, tool_calls: calls = [] } = message
  if (!(role in messageFields)) invalid('union_tag_invalid', loc, `Input tag '${role}' does not match any of the tags`)
  allow(message, messageFields[role], loc)
  if (typeof content !== 'string' && !Array.isArray(content))
    invalid('string_type', [...loc, 'content'], 'Input should be a valid string')
  if (role === 'tool') {
    checkId(message.tool_call_id)
    if (message.name !== undefined) checkName(message.name)
  }
  for (const { id, function: called } of calls) {
    checkId(id)
    checkName(called.name)
    if (typeof called.arguments !== 'string')
      invalid('string_type', [...loc, 'tool_calls'], 'Input should be a valid string')
  }
  if (role === 'assistant' && content.length === 0 && calls.length === 0) {
    refuse(
      'Assistant message must have either content or tool_calls, but not none.',
      'invalid_request_assistant_message',
    )
  }
  if (message.prefix && !last) refuse('Assistant message with prefix True must be last message')
  if (typeof content === 'string') return
  content.forEach((chunk, j) => {
    checkChunk(chunk, role, [...loc, 'content', j])
  })
}

function checkChunk(chunk, role, loc) {
  if (!chunksOf[role].has(chunk.type))
    invalid('union_tag_invalid', loc, `Input tag '${chunk.type}' is not allowed here`)
  allow(chunk, chunkFields[chunk.type], loc)
  if (chunk.type === 'input_audio' && typeof chunk.input_audio !== 'string') {
    invalid('string_type', [...loc, 'input_audio'], 'Input should be a valid string')
  }
  if (chunk.type !== 'thinking') return
  const text = chunk.thinking.map(part => part.text).join('')
  if (chunk.signature !== undefined && chunk.signature !== signatureOf(text))
    refuse('Invalid signature in a thinking chunk.')
}

function checkOrder(messages) {
  if (messages.length === 0) disorder('Conversation must have at least one message')
  let previous
  for (const { role } of messages) {
    if (previous ? !followers[previous].has(role) : !words('system user').has(role)) {
      disorder(`Unexpected role '${role}' after role '${previous}'`)
    }
    previous = role
  }
  const last = messages.at(-1)
  if (last.role === 'system' || (last.role === 'assistant' && last.prefix !== true)) {
    disorder(`Expected last role User or Tool (or Assistant with prefix True) for serving but got ${last.role}`)
  }
}

/** Each call of a message is answered once, right behind it, and nothing else is. */
function checkToolResults(messages) {
  let open = new Set()
  const unanswered = () => open.size > 0 && disorder('Not the same number of function calls and responses')
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = message.tool_call_id
      if (!open.delete(id)) disorder(`Unexpected tool call id ${id} in tool results`)
      continue
    }
    unanswered()
    const ids = (message.tool_calls ?? []).map(call => call.id)
    open = new Set(ids)
    if (open.size < ids.length) disorder('Duplicate tool call id in assistant message')
  }
  unanswered()
}
