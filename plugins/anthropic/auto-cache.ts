/** The gateway's own cache marks in a client's native body. */
import { isObject, type Json, listIn, textIn } from '../../src/plugin.ts'

const MARK = { type: 'ephemeral' }
/** Blocks that may carry a mark. */
const MARKABLE = new Set(['text', 'image', 'document', 'tool_result'])
/** Marked turns; with the marks of tools and system this is the limit of the wire. */
const MAX_TURNS = 2

/**
 * Marks the last tool, the end of the system, and the end of the last two user turns. Changes `body`, not the objects
 * it shares.
 */
export function markPrefix(body: Json): void {
  const tools = listIn(body.tools)
  const last = tools.at(-1)
  if (isObject(last)) body.tools = [...tools.slice(0, -1), marked(last)]
  if (body.system !== undefined) body.system = markedEnd(body.system)
  const turns = [...listIn(body.messages)]
  let left = MAX_TURNS
  for (let at = turns.length - 1; at >= 0 && left > 0; at--) {
    const turn = turns[at]
    if (!isObject(turn) || turn.role !== 'user') continue
    turns[at] = Object.assign({}, turn, { content: markedEnd(turn.content) })
    left -= 1
  }
  body.messages = turns
}

const marked = (block: Json): Json => Object.assign({}, block, { cache_control: MARK })

/** Content with a mark on its last block, if that may carry one. */
function markedEnd(content: unknown): unknown {
  if (typeof content === 'string') return content === '' ? content : [marked({ type: 'text', text: content })]
  const blocks = listIn(content)
  const end = blocks.at(-1)
  const isMarkable = isObject(end) && MARKABLE.has(textIn(end.type) ?? '') && end.text !== ''
  return isMarkable ? [...blocks.slice(0, -1), marked(end)] : content
}
