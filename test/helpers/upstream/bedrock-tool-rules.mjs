/** What the Converse API refuses of tools. */
import { is, refuse, refusesForce, refusesSchemas, words } from './bedrock-refusal.mjs'

const toolName = /^[a-zA-Z0-9_-]{1,64}$/
const kinds = words('toolSpec cachePoint systemTool')
const novaSchema = words('type properties required $defs definitions')

export function checkTools(body, model) {
  const { toolConfig, messages, additionalModelRequestFields: more } = body
  const calls = messages.flatMap(({ content }) => content.flatMap(({ toolUse }) => (toolUse ? [toolUse] : [])))
  checkCalls(calls, model)
  if (!toolConfig) {
    if (calls.length > 0) refuse('The toolConfig field must be defined when using toolUse and toolResult blocks.')
    if (more?.tool_choice) refuse('tool_choice may only be specified while providing tools.')
    return
  }
  const { tools, toolChoice } = toolConfig
  if (!Array.isArray(tools) || tools.length === 0) refuse('toolConfig.tools must hold a tool.')
  const specs = tools.flatMap(({ toolSpec }) => (toolSpec ? [toolSpec] : []))
  for (const tool of tools) {
    if (Object.keys(tool).length !== 1 || !kinds.has(Object.keys(tool)[0])) refuse('toolConfig.tools: unknown kind')
    if (tool.systemTool && !is.nova(model)) refuse('systemTool is not supported with this model.')
  }
  for (const spec of specs) checkSpec(spec, model)
  if (new Set(specs.map(({ name }) => name)).size < specs.length) refuse('toolConfig.tools: names must be unique')
  if (toolChoice && more?.tool_choice) {
    refuse('The additional field tool_choice/type conflicts with the existing field toolConfig.toolChoice.')
  }
  if (toolChoice) checkChoice(toolChoice, specs, more?.thinking, model)
  const forced = more?.tool_choice?.type
  if (forced === 'any' || forced === 'tool') checkForce(more.thinking, model)
}

function checkCalls(calls, model) {
  const ids = calls.map(({ toolUseId }) => toolUseId)
  if (new Set(ids).size < ids.length) refuse('The toolUse blocks contain duplicate Ids.')
  const pattern = is.mistral(model) ? /^[a-zA-Z0-9]{9}$/ : toolName
  for (const { toolUseId, name } of calls) {
    if (!pattern.test(toolUseId)) refuse(`toolUse.toolUseId must satisfy ${pattern}: ${toolUseId}`)
    if (!toolName.test(name)) refuse(`toolUse.name must satisfy ${toolName}: ${name}`)
  }
}

function checkSpec({ name, description, inputSchema, strict }, model) {
  if (!toolName.test(name)) refuse(`toolSpec.name must satisfy ${toolName}: ${name}`)
  if (description !== undefined && !description.trim()) refuse(`toolSpec.description of ${name} is blank.`)
  if (inputSchema?.json?.type !== 'object') refuse(`The type of toolSpec.inputSchema.json of ${name} must be object.`)
  if (is.nova(model) && Object.keys(inputSchema.json).some(key => !novaSchema.has(key))) {
    refuse(`The schema of ${name} may hold type, properties and required only.`)
  }
  if (strict !== undefined && refusesSchemas.test(model)) refuse('tools.0.custom.strict: Extra inputs')
}

function checkChoice(choice, specs, thinking, model) {
  const [kind] = Object.keys(choice)
  if (Object.keys(choice).length !== 1 || !words('auto any tool').has(kind)) refuse('toolChoice: unknown kind')
  if (kind === 'tool' && !specs.some(({ name }) => name === choice.tool.name)) refuse('toolChoice: no such tool')
  if (kind !== 'auto') checkForce(thinking, model)
}

function checkForce(thinking, model) {
  if (thinking && thinking.type !== 'disabled') refuse('Thinking may not be enabled when tool_choice forces tool use.')
  if (refusesForce.test(model) || is.meta(model)) refuse('tool_choice: type "tool" and "any" are not supported.')
}
