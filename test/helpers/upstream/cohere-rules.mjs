/** What Cohere's API refuses, so that a translator which sends it fails its test. */
import { knows, Refusal } from './rules.mjs'

const words = text => new Set(text.split(/\s+/))

const fields = words(
  `model messages stream tools tool_choice strict_tools documents citation_options response_format safety_mode
  max_tokens stop_sequences temperature seed frequency_penalty presence_penalty k p logprobs thinking priority raw_prompting`,
)
const messageFields = {
  system: words('role content'),
  user: words('role content'),
  assistant: words('role content tool_calls tool_plan citations'),
  tool: words('role content tool_call_id'),
}
const blocksOf = {
  system: words('text'),
  user: words('text image_url'),
  assistant: words('text thinking'),
  tool: words('text document'),
}
const blockFields = {
  text: words('type text'),
  image_url: words('type image_url'),
  thinking: words('type thinking'),
  document: words('type document'),
}
const ranges = {
  temperature: [0, Number.POSITIVE_INFINITY],
  p: [0.01, 0.99],
  frequency_penalty: [0, 1],
  presence_penalty: [0, 1],
}
const withoutThinking = /^command-(r|a-03|a-vision)/

/** Its errors have no `error`. */
class CohereRefusal extends Refusal {
  constructor(status, message) {
    super(status, { error: { message } })
    this.body = { message, id: 'simulated' }
  }
}

function refuse(message, status = 400) {
  throw new CohereRefusal(status, message)
}

function allow(object, allowed, at = '') {
  for (const name of Object.keys(object)) {
    if (!allowed.has(name)) refuse(`unknown field: parameter '${at}${name}' is not a valid field`, 422)
  }
}

/** @param {Record<string, string | undefined>} headers @param {any} body @param {string[]} keys */
export function check(headers, body, keys) {
  if (!knows(keys, /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1])) refuse('invalid api token', 401)
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) refuse('the content type must be application/json')
  if (typeof body !== 'object' || body === null) refuse('invalid request: body is not JSON')
  allow(body, fields)
  if (typeof body.model !== 'string') refuse('invalid request: model is required')
  if (!Array.isArray(body.messages) || body.messages.length === 0) refuse('invalid request: messages must not be empty')
  checkParameters(body)
  checkTools(body)
  body.messages.forEach((message, i) => {
    checkMessage(message, `messages[${i}]`)
  })
  checkToolResults(body.messages)
  const { role } = body.messages.at(-1)
  if (role !== 'user' && role !== 'tool') refuse('invalid request: the last message must be from the user or a tool')
}

function checkParameters(body) {
  for (const [name, [low, high]] of Object.entries(ranges)) {
    if (body[name] !== undefined && !(body[name] >= low && body[name] <= high)) {
      refuse(`invalid request: ${name} must be between ${low} and ${high} inclusive`)
    }
  }
  const { thinking, response_format: format, documents = [] } = body
  if (thinking !== undefined) {
    allow(thinking, words('type token_budget'), 'thinking.')
    if (!words('enabled disabled').has(thinking.type)) refuse('invalid request: thinking.type is not valid')
    if (thinking.token_budget !== undefined && !(thinking.token_budget >= 1)) {
      refuse('invalid request: thinking.token_budget must be positive')
    }
    if (withoutThinking.test(body.model)) refuse('invalid request: thinking is not supported by this model')
  }
  if (format !== undefined) {
    allow(format, words('type json_schema'), 'response_format.')
    if (!words('text json_object').has(format.type)) refuse('invalid request: response_format.type is not valid')
    if (format.json_schema && format.json_schema.type !== 'object')
      refuse('invalid request: json_schema must be an object')
    if (format.type === 'json_object' && (body.tools?.length || documents.length > 0)) {
      refuse('invalid request: response_format is not supported with documents or tools')
    }
  }
  documents.forEach((document, i) => {
    if (typeof document !== 'string') allow(document, words('id data'), `documents[${i}].`)
  })
}

function checkTools({ tools, tool_choice, strict_tools }) {
  if (tool_choice !== undefined && !words('REQUIRED NONE').has(tool_choice))
    refuse('invalid request: tool_choice is not valid')
  if (!tools?.length) {
    if (tools || tool_choice || strict_tools) refuse('invalid request: tool_choice and strict_tools need tools')
    return
  }
  tools.forEach((tool, i) => {
    if (tool.type !== 'function') refuse(`invalid request: tools[${i}].type must be function`)
    allow(tool, words('type function'), `tools[${i}].`)
    allow(tool.function, words('name description parameters'), `tools[${i}].function.`)
    if (tool.function.parameters?.type !== 'object') refuse(`invalid request: tools[${i}] must have parameters`)
  })
}

function checkMessage(message, at) {
  const { role, content, tool_calls: calls, tool_plan: plan } = message
  if (!(role in messageFields)) refuse(`invalid request: ${at}.role is not valid`, 422)
  allow(message, messageFields[role], `${at}.`)
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
  blocks.forEach((block, j) => {
    if (!blocksOf[role].has(block.type)) refuse(`invalid type: ${at}.content[${j}].type is not allowed here`, 422)
    allow(block, blockFields[block.type], `${at}.content[${j}].`)
    if (block.type === 'document') allow(block.document, words('id data'), `${at}.content[${j}].document.`)
  })
  if (calls !== undefined) {
    if (calls.length === 0) refuse(`invalid request: ${at}.tool_calls must not be empty`)
    if (blocks.some(block => block.type === 'text')) {
      refuse(
        "text content is not allowed when tool_calls are provided. If you wish to pass a tool plan, either pass thinking content (with thinking enabled) or use 'tool_plan'",
      )
    }
    return
  }
  if (plan !== undefined) refuse(`invalid request: ${at}.tool_plan needs tool_calls`)
  if (role !== 'tool' && (blocks.length === 0 || blocks.some(block => block.text === ''))) {
    refuse(`invalid request: ${at} must have non-empty content`)
  }
}

/** Each call is answered by one tool message right behind it, and nothing else is. */
function checkToolResults(messages) {
  let open = new Set()
  const unanswered = () => open.size > 0 && refuse(`missing tool results for tool calls ${[...open].join(', ')}`)
  for (const { role, tool_call_id: id, tool_calls: calls = [] } of messages) {
    if (role === 'tool') {
      if (!open.delete(id)) refuse(`tool call id ${id} not found in previous tool calls`)
      continue
    }
    unanswered()
    open = new Set(calls.map(call => call.id))
    if (open.size < calls.length) refuse('duplicate tool call id')
  }
  unanswered()
}
