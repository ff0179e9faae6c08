/** All tools of a Messages body: those that it declares, and those that blocks of its turns define (docs/contract.md#messages). */
import { isObject, type Json, listIn } from '../../json/json.ts'

/** A tool, or what stands in the place of one; `at` is its path in the body. */
export interface PlacedTool {
  readonly tool: unknown
  readonly at: string
}

/** Members of blocks that hold further blocks. */
const NESTED = ['content', 'source', 'tool_changes'] as const
/** Members of a reference to a tool that is declared elsewhere, all of them texts. */
const REFERENCE: ReadonlySet<string> = new Set(['type', 'name', 'server_name'])
const REFERENCES: ReadonlySet<unknown> = new Set([
  undefined,
  'tool_reference',
  'mcp_tool_reference',
  'mcp_toolset_reference',
])

/** Entries of `tools`, then definitions in blocks of any turn. `body` may be of any shape. */
export function toolsIn(body: Readonly<Json>): PlacedTool[] {
  const declared = listIn(body.tools).map((tool, i) => ({ tool, at: `tools[${i}]` }))
  return [...declared, ...toolsAdded(body).flatMap(added => definitionIn(added) ?? [])]
}

/** Finds the tools that blocks of `system` or of a message add, in any form. */
export function toolsAdded({ system, messages }: Readonly<Json>): PlacedTool[] {
  const found: PlacedTool[] = []
  search(system, ['system'], found)
  const turns = listIn(messages)
  for (let i = 0; i < turns.length; i++) {
    const turn = turns[i]
    if (isObject(turn) && Array.isArray(turn.content)) search(turn.content, ['messages', i, 'content'], found)
  }
  return found
}

/** The definition that an added tool is; undefined for any other form. */
export function definitionIn({ tool, at }: PlacedTool): PlacedTool | undefined {
  if (!isObject(tool) || tool.type !== 'tool_definition' || !isObject(tool.definition)) return undefined
  return { tool: tool.definition, at: `${at}.definition` }
}

/** Whether an added tool only names one that is declared elsewhere. */
export const isReference = ({ tool }: PlacedTool): boolean =>
  isObject(tool) &&
  REFERENCES.has(tool.type) &&
  Object.entries(tool).every(([name, value]) => REFERENCE.has(name) && typeof value === 'string')

/** Names of members, and places in lists. */
type Path = (string | number)[]

/** A path is written where a tool is found, not for every block. */
function search(value: unknown, path: Path, found: PlacedTool[]): void {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      path.push(i)
      if (isObject(value[i])) inBlock(value[i], path, found)
      path.pop()
    }
  } else if (isObject(value)) inBlock(value, path, found)
}

function inBlock(block: Json, path: Path, found: PlacedTool[]): void {
  if (block.type === 'tool_addition') found.push({ tool: block.tool, at: `${written(path)}.tool` })
  for (const name of NESTED) {
    const nested = block[name]
    if (typeof nested !== 'object' || nested === null) continue
    path.push(name)
    search(nested, path, found)
    path.pop()
  }
}

const written = ([first, ...more]: Path): string =>
  `${first}${more.map(step => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('')}`
