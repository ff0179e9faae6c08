/** What the Messages API refuses, so that a translator which sends it fails its test. */
import { signatureOf } from './answer.mjs'
import { knows, Refusal } from './rules.mjs'

const words = text => new Set(text.split(/\s+/))

const fields = words(
  `model messages max_tokens system temperature top_p top_k stop_sequences stream tools tool_choice thinking
  output_config metadata service_tier speed cache_control inference_geo container diagnostics context_management
  mcp_servers fallbacks`,
)
const betas = words(
  `structured-outputs-2025-11-13 advanced-tool-use-2025-11-20 context-management-2025-06-27 compact-2026-01-12
  task-budgets-2026-03-13 fast-mode-2026-02-01 files-api-2025-04-14 skills-2025-10-02 mcp-client-2025-04-04
  server-side-fallback-2026-06-01 server-side-fallback-2026-07-01 prompt-caching-2024-07-31
  extended-cache-ttl-2025-04-11 interleaved-thinking-2025-05-14 context-1m-2025-08-07 output-128k-2025-02-19
  token-efficient-tools-2025-02-19 model-context-window-exceeded-2025-08-26 web-fetch-2025-09-10
  code-execution-web-tools-2026-02-09 structured-outputs-2025-12-15`,
)
const blocks = {
  user: words('text image document tool_result search_result'),
  assistant: words(
    `text tool_use thinking redacted_thinking server_tool_use web_search_tool_result tool_search_tool_result`,
  ),
  system: words('text'),
}
const sampling = ['temperature', 'top_p', 'top_k']
const refusesSampling = /opus-5|fable-5|sonnet-5|haiku-5|opus-4-[78]/
const refusesBudget = refusesSampling
const refusesPrefill = /opus-4-[678]|(opus|sonnet|haiku|fable)-5/
const thinksByDefault = /(opus|sonnet|haiku|fable)-5/
const alwaysThinks = /opus-5-5|fable-5/

function refuse(message, status = 400, type = 'invalid_request_error') {
  throw new Refusal(status, { type: 'error', error: { type, message }, request_id: 'req_refused' })
}

/** @param {Record<string, string | undefined>} headers @param {any} body @param {string[]} keys */
export function check(headers, body, keys) {
  const given = headers['x-api-key'] ?? /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
  if (!knows(keys, given)) refuse('invalid x-api-key', 401, 'authentication_error')
  const version = headers['anthropic-version']
  if (version === undefined) refuse('anthropic-version: header is required')
  if (version !== '2023-06-01' && version !== '2026-10-21') refuse(`anthropic-version: "${version}" is not valid`)
  for (const beta of headers['anthropic-beta']?.split(',') ?? []) {
    if (!betas.has(beta.trim())) refuse(`Unexpected value(s) \`${beta.trim()}\` for the \`anthropic-beta\` header.`)
  }
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) refuse('content-type: must be application/json')
  if (typeof body !== 'object' || body === null) refuse('The request body is not valid JSON')
  for (const name of Object.keys(body)) if (!fields.has(name)) refuse(`${name}: Extra inputs are not permitted`)
  for (const name of Object.keys(body.metadata ?? {})) {
    if (name !== 'user_id') refuse(`metadata.${name}: Extra inputs are not permitted`)
  }
  if (typeof body.model !== 'string') refuse('model: Field required')
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 0) refuse('max_tokens: Field required')
  if (!Array.isArray(body.messages) || body.messages.length === 0) refuse('messages: at least one message is required')
  checkSampling(body, version)
  checkThinking(body)
  checkTools(body)
  checkTurns(body.messages, body.model)
  checkToolResults(body.messages)
  checkLoop(body)
  checkBreakpoints(body)
}

function checkSampling(body, version) {
  for (const name of sampling) {
    if (body[name] === undefined) continue
    if (version === '2026-10-21' || refusesSampling.test(body.model)) {
      refuse(`\`${name}\` is not supported with this model.`)
    }
  }
  if (body.temperature !== undefined && !(body.temperature >= 0 && body.temperature <= 1)) {
    refuse('temperature: range: 0..1')
  }
  if (body.temperature !== undefined && body.top_p !== undefined) {
    refuse('`temperature` and `top_p` cannot both be specified for this model.')
  }
}

function checkThinking({ model, thinking, max_tokens, tool_choice, messages, ...body }) {
  if (alwaysThinks.test(model)) {
    if (thinking?.type === 'disabled') refuse('thinking.type: `disabled` is not supported with this model.')
    if (forces(tool_choice)) refuse('tool_choice: `any` and `tool` are not supported with this model.')
  }
  if (thinking === undefined || thinking.type === 'disabled') return
  if (thinking.type === 'enabled') {
    if (refusesBudget.test(model)) refuse('thinking.type: `enabled` is not supported with this model.')
    if (!(thinking.budget_tokens >= 1024)) refuse('thinking.enabled.budget_tokens: must be at least 1024')
    if (thinking.budget_tokens >= max_tokens) refuse('`max_tokens` must be greater than `thinking.budget_tokens`.')
  } else if (thinking.type !== 'adaptive' && thinking.type !== 'between_tools') {
    refuse(`thinking.type: "${thinking.type}" is not valid`)
  }
  for (const name of sampling)
    if (body[name] !== undefined) refuse(`\`${name}\` must be unset when thinking is enabled.`)
  if (forces(tool_choice)) refuse('Thinking may not be enabled when tool_choice forces tool use.')
  if (messages.at(-1).role === 'assistant') refuse('The final message must be from the user while thinking is enabled.')
}

const forces = choice => choice?.type === 'any' || choice?.type === 'tool'

function checkTools({ tools, tool_choice }) {
  if (tool_choice !== undefined && !tools?.length) refuse('tool_choice may only be specified while providing tools.')
  tools?.forEach((tool, i) => {
    if (tool.type?.startsWith('web_search_') && tool.allowed_domains && tool.blocked_domains) {
      refuse(`tools.${i}: allowed_domains and blocked_domains exclude each other`)
    }
    if (tool.type !== undefined && tool.type !== 'custom') return
    if (!/^[A-Za-z0-9_-]{1,128}$/.test(tool.name ?? '')) refuse(`tools.${i}.name: String should match the pattern`)
    if (tool.input_schema?.type !== 'object') refuse(`tools.${i}.custom.input_schema.type: must be "object"`)
  })
}

/** The real API merges equal roles in a row; a translator that relies on it splits tool results, so it is refused. */
function checkTurns(messages, model) {
  let previous = 'assistant'
  messages.forEach((message, i) => {
    const allowed = blocks[message.role]
    if (!allowed || (message.role === 'system' && i === 0))
      refuse(`messages.${i}.role: "${message.role}" is not allowed`)
    if (message.role === previous) refuse(`messages.${i}: roles must alternate between "user" and "assistant"`)
    if (message.role !== 'system') previous = message.role
    blocksOf(message).forEach((block, j) => {
      const at = `messages.${i}.content.${j}`
      if (!allowed.has(block.type)) refuse(`${at}: type "${block.type}" is not allowed in a ${message.role} message`)
      if (block.type === 'text' && block.text === '') refuse('messages: text content blocks must be non-empty')
      if (block.type === 'thinking' && block.signature !== signatureOf(block.thinking)) {
        refuse(`${at}: Invalid \`signature\` in \`thinking\` block`)
      }
    })
  })
  if (previous === 'user') return
  const last = blocksOf(messages.at(-1)).at(-1)
  if (refusesPrefill.test(model)) refuse('This model does not support assistant message prefill.')
  if (last?.type === 'text' && last.text.trimEnd() !== last.text) {
    refuse('messages: final assistant content cannot end with trailing whitespace')
  }
}

const blocksOf = ({ content }) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content)

/** All results of a turn's calls come first in the very next user message, and nothing but them is a result. */
function checkToolResults(messages) {
  let calls = []
  messages.forEach((message, i) => {
    if (message.role === 'system') return
    const content = blocksOf(message)
    const results = content.filter(block => block.type === 'tool_result').map(block => block.tool_use_id)
    const stranger = results.find(id => !calls.includes(id))
    if (stranger !== undefined) {
      refuse(
        `messages.${i}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stranger}. Each must have a corresponding \`tool_use\` block in the previous message.`,
      )
    }
    const open = calls.filter(id => !results.includes(id))
    if (open.length > 0) {
      refuse(
        `messages.${i}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}.`,
      )
    }
    if (content.slice(0, results.length).some(block => block.type !== 'tool_result')) {
      refuse(`messages.${i}: \`tool_result\` blocks must come first`)
    }
    calls = content.filter(block => block.type === 'tool_use').map(block => block.id)
    const illegal = calls.find(id => !/^[a-zA-Z0-9_-]+$/.test(id))
    if (illegal !== undefined) refuse(`messages.${i}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
  })
  if (calls.length > 0) {
    refuse(
      `messages: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${calls.join(', ')}.`,
    )
  }
}

/** A loop of tool calls is one turn: under a budget it begins with a thought, without thinking it holds none. */
function checkLoop({ model, thinking, messages }) {
  const turns = messages
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }) => ({ role, content: blocksOf({ content }) }))
  const words = turns.findLastIndex(
    ({ role, content }) => role === 'user' && !content.some(b => b.type === 'tool_result'),
  )
  const loop = turns.slice(words + 1).filter(({ role }) => role === 'assistant')
  if (loop.length === 0 || turns.at(-1).role === 'assistant') return
  const isThought = ({ type }) => type === 'thinking' || type === 'redacted_thinking'
  if (thinking?.type === 'enabled' && !isThought(loop[0].content[0])) {
    refuse('Expected `thinking` or `redacted_thinking`, but found `tool_use`.')
  }
  const off = thinking === undefined ? !thinksByDefault.test(model) : thinking.type === 'disabled'
  if (off && loop.some(({ content }) => content.some(isThought))) {
    refuse('When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`.')
  }
}

/** At most four breakpoints, in the order tools, system, messages; those of an hour before those of five minutes. */
function checkBreakpoints(body) {
  const marked = [body.tools, body.system, ...body.messages.map(message => message.content)]
    .filter(Array.isArray)
    .flat()
    .filter(block => block.cache_control !== undefined)
  if (marked.some(block => block.type === 'thinking')) refuse('cache_control cannot be set for thinking blocks')
  const controls = [...marked, ...(body.cache_control ? [body] : [])].map(block => block.cache_control)
  if (controls.length > 4) {
    refuse(`A maximum of 4 blocks with cache_control may be provided. Found ${controls.length}.`)
  }
  const firstShort = controls.findIndex(control => control.ttl !== '1h')
  if (firstShort >= 0 && controls.slice(firstShort).some(control => control.ttl === '1h')) {
    refuse('a ttl="1h" cache_control block must not come after a ttl="5m" cache_control block.')
  }
}
