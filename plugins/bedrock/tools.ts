/** `toolConfig`: tools and tool choice. */
import { append, type ChatRequest, type Json, type Target, type Tool } from '../../src/plugin.ts'
import { wireSchemaOf } from '../shared/claude/property-names.ts'
import { fitsStructuredOutputs, strictSchema } from '../shared/claude/schema.ts'
import { cannotForce } from '../shared/claude/thinking.ts'
import { JSON_TOOL, shortName } from '../shared/tool-name.ts'
import { toolSchema } from '../shared/tool-schema.ts'
import { type Block, cachePoint } from './block.ts'
import { type Family, familyOf } from './family.ts'

interface ToolSettings {
  readonly toolConfig?: Json
  /**
   * The choice in Claude's own form, the only one that can forbid parallel calls; it excludes `toolConfig.toolChoice`.
   */
  readonly nativeChoice?: Json
  /** True when the model must call a tool. */
  readonly forced: boolean
  /** True when tools are declared only because the history uses them: the model must not call any. */
  readonly forbidden: boolean
}

interface Circumstances {
  /** Whether the model can be forced to call a tool in this request. */
  readonly forcible: boolean
  /** Input schema of a tool that gives the answer. */
  readonly answer: Json | undefined
  /** Names of the tools that the history calls. */
  readonly used: ReadonlySet<string>
}

const NOTHING: ToolSettings = { forced: false, forbidden: false }

/**
 * Tools in the caller's order, so that a cached prefix stays valid. A history with calls must declare tools, even when
 * the caller offers none or forbids them. Throws 400 for a choice that Claude cannot be forced to.
 */
export function toolsOf(request: Readonly<ChatRequest>, target: Target, at: Circumstances): ToolSettings {
  const family = familyOf(target.mapping)
  const { answer, used } = at
  const forbids = request.tool_choice === 'none'
  const offered = offeredTools(request, target, family)
  if (answer) {
    const tools = [...offered, answerTool(answer, family)]
    return chosen(tools, answerChoice(request, offered.length > 0), true, family)
  }
  if (offered.length > 0 && !forbids) {
    const requested = choiceOf(request.tool_choice)
    const refused = isForced(requested) && !at.forcible
    if (refused && family.maker === 'anthropic') throw cannotForce(target.mapping, 'tool_choice')
    const choice = refused ? { auto: {} } : requested
    return chosen(offered, choice, request.parallel_tool_calls === false, family)
  }
  if (used.size === 0) return NOTHING
  const tools = offered.length > 0 ? offered : [...used].map(usedTool)
  return { toolConfig: { tools }, forced: false, forbidden: true }
}

/** False where the client forbids calls, or tools are declared for its history alone. */
export const takesCalls = (request: Readonly<ChatRequest> | undefined): boolean =>
  request?.tool_choice !== 'none' &&
  (request?.tools?.some(({ type }) => type === 'function') === true ||
    !request?.messages.some(turn => turn.tool_calls?.length))

function chosen(tools: Block[], choice: Json | undefined, single: boolean, { maker }: Family): ToolSettings {
  const forced = isForced(choice)
  if (!single || maker !== 'anthropic') {
    return { toolConfig: { tools, ...(choice && { toolChoice: choice }) }, forced, forbidden: false }
  }
  const [[type, more] = ['auto', {}]] = Object.entries(choice ?? {})
  const nativeChoice = { type, ...(more as Json), disable_parallel_tool_use: true }
  return { toolConfig: { tools }, nativeChoice, forced, forbidden: false }
}

function offeredTools(request: Readonly<ChatRequest>, { mapping }: Target, family: Family): Block[] {
  const strict = mapping.supports.has('structured_outputs') && family.takesSchemas
  const tools: Block[] = []
  let searches = request.web_search === true
  for (const tool of request.tools ?? []) {
    if (tool.type === 'web_search') searches = true
    if (tool.type !== 'function') continue
    tools.push(functionTool(tool, strict, family))
    if (family.maker !== 'amazon') append(tools, cachePoint(tool.cache_control, mapping))
  }
  // Only one maker's models have built-in search.
  if (searches && family.maker === 'amazon' && mapping.supports.has('web_search')) tools.push(SEARCH)
  return tools
}

const SEARCH: Block = { systemTool: { name: 'nova_grounding' } }

function functionTool(tool: Extract<Tool, { type: 'function' }>, canBeStrict: boolean, { maker }: Family): Block {
  const { name, description = '', parameters, strict } = tool.function
  const { schema } = wireSchemaOf(parameters)
  const isStrict = strict === true && canBeStrict && fitsStructuredOutputs(schema, true)
  const json = isStrict ? strictSchema(schema) : maker === 'amazon' ? plainSchema(schema) : schema
  return toolSpec(shortName(name), description, json, isStrict)
}

/** The wire rejects empty descriptions. */
const toolSpec = (name: string, description: string, json: Json, strict = false): Block => ({
  toolSpec: {
    name,
    ...(description.trim() && { description }),
    inputSchema: { json },
    ...(strict && { strict }),
  },
})

/** At the top of a schema, Nova accepts only object keywords; definitions are kept for their uses. */
function plainSchema(schema: Json): Json {
  const kept = ['type', 'properties', 'required', '$defs', 'definitions']
  return Object.fromEntries(Object.entries(schema).filter(([key]) => kept.includes(key)))
}

const answerTool = (schema: Json, { maker }: Family): Block =>
  toolSpec(
    JSON_TOOL,
    'Gives the final answer. The answer must be given by calling this tool, never as text.',
    maker === 'amazon' ? plainSchema(toolSchema(schema)) : toolSchema(schema),
  )

const usedTool = (name: string): Block =>
  toolSpec(name, 'A tool that was used earlier in this conversation.', { type: 'object', properties: {} })

const isForced = (choice: Json | undefined): boolean => choice !== undefined && !('auto' in choice)

function choiceOf(choice: ChatRequest['tool_choice']): Json | undefined {
  if (choice == null || choice === 'none') return undefined
  if (choice === 'auto') return { auto: {} }
  if (choice === 'required') return { any: {} }
  return choice.type === 'function' ? named(shortName(choice.function.name)) : undefined
}

const named = (name: string): Json => ({ tool: { name } })

/**
 * The answer arrives by tool, so a tool must be called: the caller's while allowed, else the answer, which is named
 * only when other tools exist, because not every model accepts a name.
 */
function answerChoice({ tool_choice: choice }: Readonly<ChatRequest>, hasOthers: boolean): Json {
  if (typeof choice === 'object' && choice?.type === 'function') return named(shortName(choice.function.name))
  return hasOthers && choice === 'none' ? named(JSON_TOOL) : { any: {} }
}
