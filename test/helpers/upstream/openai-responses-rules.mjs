/** What the Responses API refuses, so that a translator which sends it fails its test. */
import { signatureOf } from './answer.mjs'
import { knows, Refusal } from './rules.mjs'

const words = text => new Set(text.split(/\s+/))

const fields = words(
  `model input instructions background client_metadata context_management conversation include max_output_tokens max_tool_calls metadata
  moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
  prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text
  tool_choice tools top_logprobs top_p truncation user`,
)
const includes = words(
  `reasoning.encrypted_content web_search_call.action.sources web_search_call.results file_search_call.results
  message.input_image.image_url message.output_text.logprobs computer_call_output.output.image_url
  code_interpreter_call.outputs`,
)
const choices = {
  service_tier: words('auto default flex scale priority'),
  prompt_cache_retention: words('in_memory 24h'),
  truncation: words('auto disabled'),
}
const ranges = { temperature: [0, 2], top_p: [0, 1], top_logprobs: [0, 20] }
const reasoningFields = {
  effort: words('none minimal low medium high xhigh max'),
  summary: words('auto concise detailed'),
  context: words('auto current_turn all_turns'),
  mode: words('standard pro'),
}
const toolFields = {
  function: words('type name description parameters strict defer_loading output_schema allowed_callers'),
  custom: words('type name description format'),
  namespace: words('type name description tools'),
  tool_search: words('type description execution parameters'),
  web_search: words('type filters search_context_size user_location'),
}
const formatFields = {
  text: words('type'),
  json_object: words('type'),
  json_schema: words('type name description schema strict'),
}

/** Fields of input items by type; those that the model made may follow reasoning. */
const itemFields = {
  message: words('type id role content status phase'),
  function_call: words('type id call_id name arguments namespace status'),
  function_call_output: words('type id call_id output status'),
  custom_tool_call: words('type id call_id name input namespace status'),
  custom_tool_call_output: words('type id call_id output status'),
  reasoning: words('type id summary content encrypted_content status'),
  web_search_call: words('type id status action'),
  tool_search_call: words('type id arguments call_id execution status'),
  tool_search_output: words('type id tools call_id execution status'),
  compaction: words('type id encrypted_content'),
}
const isMade = item =>
  item.type === 'message'
    ? item.role === 'assistant'
    : item.type !== 'reasoning' && !item.type.endsWith('_call_output') && item.type in itemFields

const inputFields = {
  input_text: words('type text prompt_cache_breakpoint'),
  input_image: words('type image_url file_id detail prompt_cache_breakpoint'),
  input_file: words('type filename file_data file_id file_url detail prompt_cache_breakpoint'),
  input_audio: words('type input_audio prompt_cache_breakpoint'),
}
const outputFields = { output_text: words('type text annotations logprobs'), refusal: words('type refusal') }

function refuse(message, param = null, code = null, status = 400) {
  throw new Refusal(status, { error: { message, type: 'invalid_request_error', param, code } })
}

function allow(object, allowed, at) {
  for (const name of Object.keys(object)) {
    if (!allowed?.has(name)) refuse(`Unknown parameter: '${at}${name}'.`, `${at}${name}`, 'unknown_parameter')
  }
}

/** Refuses a `value` that is not one of `allowed`. */
function choose(value, allowed, at) {
  if (value != null && !allowed.has(value)) refuse(`Invalid value: '${value}'.`, at, 'invalid_value')
}

/** @param {Record<string, string | undefined>} headers @param {any} body @param {string[]} keys */
export function check(headers, body, keys) {
  if (!knows(keys, /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1])) {
    refuse('Incorrect API key provided.', null, 'invalid_api_key', 401)
  }
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) refuse('The content type must be application/json.')
  if (typeof body !== 'object' || body === null) refuse('We could not parse the JSON body of your request.')
  allow(body, fields, '')
  if (typeof body.model !== 'string') refuse("Missing required parameter: 'model'.", 'model')
  checkParameters(body)
  checkModel(body)
  checkTools(body)
  if (typeof body.input === 'string') return
  if (!Array.isArray(body.input) || body.input.length === 0) {
    refuse("Missing required parameter: 'input'.", 'input', 'missing_required_parameter')
  }
  const items = body.input.map(item => ({ type: 'message', ...item }))
  items.forEach(checkItem)
  checkIds(items)
  checkReasoning(items)
  checkCalls(items)
}

function checkParameters(body) {
  for (const [name, allowed] of Object.entries(choices)) choose(body[name], allowed, name)
  for (const [name, [low, high]] of Object.entries(ranges)) {
    if (body[name] != null && !(body[name] >= low && body[name] <= high)) {
      refuse(`Invalid '${name}': expected ${low} to ${high}.`, name, 'invalid_value')
    }
  }
  const { max_output_tokens: limit, include, text, stream_options: options } = body
  if (limit != null && !(Number.isInteger(limit) && limit >= 16)) {
    const wanted = `Expected a value >= 16, but got ${limit} instead.`
    const code = 'integer_below_min_value'
    refuse(`Invalid 'max_output_tokens': integer below minimum value. ${wanted}`, 'max_output_tokens', code)
  }
  include?.forEach((value, i) => {
    choose(value, includes, `include[${i}]`)
  })
  if (options != null && body.stream !== true) refuse("'stream_options' needs 'stream'.", 'stream_options')
  allow(text ?? {}, words('format verbosity'), 'text.')
  choose(text?.verbosity, words('low medium high'), 'text.verbosity')
  if (text?.format) checkFormat(text.format, body)
}

function checkFormat(format, body) {
  allow(format, formatFields[format.type], 'text.format.')
  if (format.type === 'json_schema' && !/^[A-Za-z0-9_-]{1,64}$/.test(format.name ?? '')) {
    refuse("Invalid 'text.format.name'.", 'text.format.name', 'invalid_value')
  }
  if (format.type === 'json_object' && !/json/i.test(JSON.stringify([body.input, body.instructions]))) {
    const wanted = "must contain the word 'json' in some form to use 'text.format' of type 'json_object'."
    refuse(`Response input messages ${wanted}`, 'input')
  }
}

/** Only what the name of a model tells; a model of another family takes everything. */
function checkModel({ model, reasoning, include, temperature, top_p }) {
  const gpt = /^gpt-(\d+)(\.\d+)?o?(-.+)?$/.exec(model)
  const reasons = /^o\d+(-|$)/.test(model) || (gpt && Number(gpt[1]) >= 5 && !gpt[3]?.startsWith('-chat'))
  const unsupported = name => refuse(`Unsupported parameter: '${name}' is not supported with this model.`, name)
  allow(reasoning ?? {}, new Set(Object.keys(reasoningFields)), 'reasoning.')
  for (const [name, value] of Object.entries(reasoning ?? {})) choose(value, reasoningFields[name], `reasoning.${name}`)
  if (gpt && !reasons) {
    if (reasoning?.effort != null) unsupported('reasoning.effort')
    if (include?.includes('reasoning.encrypted_content')) {
      refuse('Encrypted content is not supported with this model.', 'include')
    }
  }
  if (!reasons || (gpt?.[2] !== undefined && reasoning?.effort === 'none')) return
  if (temperature != null) unsupported('temperature')
  if (top_p != null) unsupported('top_p')
}

function checkTools({ tools = [], tool_choice: choice }) {
  const searched = tools.some(tool => tool.type === 'tool_search')
  tools.forEach((tool, i) => {
    const at = `tools[${i}].`
    if (!toolFields[tool.type]) refuse(`Invalid value: '${tool.type}'.`, `${at}type`, 'invalid_value')
    allow(tool, toolFields[tool.type], at)
    if (tool.defer_loading && !searched) refuse("'defer_loading' needs a 'tool_search' tool.", `${at}defer_loading`)
    if (tool.type === 'web_search') checkSearch(tool, at)
    if (tool.type !== 'function') return
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(tool.name ?? '')) refuse(`Invalid '${at}name'.`, `${at}name`, 'invalid_value')
    if (tool.parameters === undefined) refuse(`Missing required parameter: '${at}parameters'.`, `${at}parameters`)
    // Where it is left out, the provider closes the schema if it can, and else does without.
    if (tool.strict === true) checkStrict(tool, at)
  })
  if (choice == null) return
  if (typeof choice === 'string') {
    choose(choice, words('none auto required'), 'tool_choice')
    if (choice === 'required' && tools.length === 0) refuse("'tool_choice' needs 'tools'.", 'tool_choice')
  } else if (!tools.some(tool => tool.type === choice.type && tool.name === choice.name)) {
    refuse(`Tool choice '${choice.name ?? choice.type}' not found in 'tools' parameter.`, 'tool_choice')
  }
}

function checkSearch({ filters, user_location: place }, at) {
  allow(filters ?? {}, words('allowed_domains'), `${at}filters.`)
  allow(place ?? {}, words('type city region country timezone'), `${at}user_location.`)
  if (place && place.type !== 'approximate') refuse('Invalid value.', `${at}user_location.type`, 'invalid_value')
}

/** It needs a closed schema with all properties required. */
function checkStrict({ name, parameters }, at) {
  const { additionalProperties: open, properties = {}, required = [] } = parameters ?? {}
  const isClosed = open === false && Object.keys(properties).every(property => required.includes(property))
  if (isClosed) return
  const why = "In context=(), 'additionalProperties' is required to be supplied and to be false."
  refuse(`Invalid schema for function '${name}': ${why}`, `${at}parameters`, 'invalid_function_parameters')
}

function checkItem(item, i) {
  const at = `input[${i}].`
  if (!itemFields[item.type]) refuse(`Invalid value: '${item.type}'.`, `${at}type`, 'invalid_value')
  allow(item, itemFields[item.type], at)
  if (item.type === 'message') checkMessage(item, at)
  if (item.type === 'function_call') {
    if (!/^[A-Za-z0-9_-]+$/.test(item.name)) refuse(`Invalid '${at}name'.`, `${at}name`, 'invalid_value')
    if (typeof item.arguments !== 'string') refuse(`Invalid '${at}arguments': expected a string.`, `${at}arguments`)
  }
  if (item.type === 'custom_tool_call' && typeof item.input !== 'string') {
    refuse(`Invalid '${at}input': expected a string.`, `${at}input`)
  }
  if (item.type.endsWith('_call_output')) checkContent(item.output, inputFields, `${at}output`)
  if (item.call_id != null && (item.call_id === '' || item.call_id.length > 64)) {
    const wanted = `Expected a string with maximum length 64, but got length ${item.call_id.length} instead.`
    refuse(`Invalid '${at}call_id': ${wanted}`, `${at}call_id`, 'string_above_max_length')
  }
}

function checkMessage({ role, content, phase }, at) {
  choose(role, words('user assistant system developer'), `${at}role`)
  choose(phase, words('commentary final_answer'), `${at}phase`)
  if (content == null) refuse(`Missing required parameter: '${at}content'.`, `${at}content`)
  checkContent(content, role === 'assistant' ? outputFields : inputFields, `${at}content`)
}

function checkContent(content, known, at) {
  if (typeof content === 'string') return
  if (!Array.isArray(content)) refuse(`Invalid type for '${at}'.`, at, 'invalid_type')
  content.forEach((part, j) => {
    const here = `${at}[${j}]`
    if (!known[part.type]) {
      const supported = Object.keys(known).map(type => `'${type}'`)
      refuse(`Invalid value: '${part.type}'. Supported values are: ${supported.join(', ')}.`, here, 'invalid_value')
    }
    allow(part, known[part.type], `${here}.`)
    if (part.type === 'input_audio' && !['wav', 'mp3'].includes(part.input_audio.format)) refuse('Invalid audio.', here)
    if (part.type === 'input_image' && !/^(https?:|data:image\/)/.test(part.image_url ?? '')) {
      refuse('Invalid image URL.', here, 'invalid_image_url')
    }
    if (part.type === 'input_file' && !part.file_id && !part.file_url && !(part.file_data && part.filename)) {
      refuse(`Missing required parameter: '${here}.filename'.`, here, 'missing_required_parameter')
    }
  })
}

function checkIds(items) {
  const seen = new Set()
  for (const { id } of items) {
    if (id != null && seen.has(id)) refuse(`Duplicate item found with id ${id}.`, 'input')
    seen.add(id)
  }
}

/** Reasoning comes back as it was given, directly before what it led to. */
function checkReasoning(items) {
  items.forEach((item, i) => {
    if (item.type !== 'reasoning') return
    const at = `input[${i}]`
    if (!Array.isArray(item.summary)) refuse(`Missing required parameter: '${at}.summary'.`, `${at}.summary`)
    if (item.encrypted_content == null) {
      refuse(`Item with id '${item.id}' not found. Items are not persisted when \`store\` is set to false.`, 'input')
    }
    if (item.encrypted_content !== signatureOf(item.summary.map(part => part.text).join(''))) {
      const message = `The encrypted content for item ${item.id} could not be verified.`
      refuse(message, null, 'invalid_encrypted_content')
    }
    const next = items.slice(i + 1).find(other => other.type !== 'reasoning')
    if (!next || !isMade(next)) {
      refuse(`Item '${item.id}' of type 'reasoning' was provided without its required following item.`, 'input')
    }
  })
}

/** Each call has one output after it, and nothing else is one. */
function checkCalls(items) {
  const open = new Set()
  const seen = new Set()
  for (const { type, call_id: id } of items) {
    const kind = type.replaceAll('_', ' ')
    if (type === 'function_call' || type === 'custom_tool_call') {
      if (seen.has(id)) refuse(`Duplicate function call with call_id ${id}.`, 'input')
      seen.add(id)
      open.add(`${kind} ${id}`)
    } else if (type.endsWith('_call_output') && !open.delete(`${kind.replace(' output', '')} ${id}`)) {
      refuse(`No tool call found for ${kind} with call_id ${id}.`, 'input')
    }
  }
  for (const call of open) refuse(`No tool output found for ${call}.`, 'input')
}
