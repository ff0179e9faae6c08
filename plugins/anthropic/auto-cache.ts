/** The gateway's own marks of where a prompt may be cached, in a client's own body. */
import { isObject, type Json, listIn } from '../../src/plugin.ts'

const MARK = { type: 'ephemeral' }
/** Blocks that may have a mark. */
const MARKABLE = new Set(['text', 'image', 'document', 'tool_result'])
/** Of turns; with the tools and the system they are as many as the wire takes. */
const MAX_TURNS = 2

/** Marks the last tool, the end of the system and of the last two turns of the user. Changes `body`, not what it shares. */
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

/** Content whose last block has a mark, where that may have one. */
function markedEnd(content: unknown): unknown {
  if (typeof content === 'string') return content === '' ? content : [marked({ type: 'text', text: content })]
  const blocks = listIn(content)
  const end = blocks.at(-1)
  const isMarkable = isObject(end) && MARKABLE.has(String(end.type)) && end.text !== ''
  return isMarkable ? [...blocks.slice(0, -1), marked(end)] : content
}
