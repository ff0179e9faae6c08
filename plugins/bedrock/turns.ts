/** A chat history for the Converse wire: alternating turns, each tool call answered in the next turn. */

import { createHash } from 'node:crypto'
import {
  append,
  errors,
  functionCalls,
  type Message,
  objectArguments,
  PendingToolCalls,
  resultWithErrorText,
  SHOWN_NEXT,
  shownFor,
  type Target,
  turnOf,
} from '../../src/plugin.ts'
import { UniqueNames } from '../shared/claude/unique-names.ts'
import { shortName } from '../shared/tool-name.ts'
import { type Block, type ConverseTurn, cachePoint, markOf, textBlock } from './block.ts'
import { Contents } from './content.ts'
import { type Family, familyOf } from './family.ts'
import { replayReasoning } from './reasoning.ts'

const MAX_ID_CHARACTERS = 64
const SHORT_ID = /^[a-zA-Z0-9]{9}$/

/** At most 64 letters, digits, `_` and `-`; `count`: which call of this foreign id it is, from 1 on. */
function plainId(foreign: string, count: number): string {
  const base = foreign.slice(0, MAX_ID_CHARACTERS).replace(/[^a-zA-Z0-9_-]/g, '_') || 'call'
  const suffix = count === 1 ? '' : `_${count}`
  return base.slice(0, MAX_ID_CHARACTERS - suffix.length) + suffix
}

/** Models of Mistral accept exactly nine letters and digits. */
function shortId(foreign: string, count: number): string {
  if (count === 1 && SHORT_ID.test(foreign)) return foreign
  return createHash('sha256').update(`${foreign}#${count}`).digest('hex').slice(0, 9)
}

interface History {
  readonly system: Block[]
  readonly turns: ConverseTurn[]
  /** Names of the called tools, each once: the wire requires their declaration. */
  readonly toolsUsed: ReadonlySet<string>
}

/** Place for the result of a tool call; unset until a tool message fills it. */
interface Slot {
  readonly id: string
  result: Block[] | undefined
  /** Media of the result that stand behind all results of the turn. */
  shown?: Block[]
}

interface Draft extends ConverseTurn {
  readonly slots: Slot[]
}

/**
 * Leading system messages become `system`; a later one stays in place as a reminder, since moving it would change the
 * cached prefix. Throws 400 for a tool result without a call and for arguments that are not a JSON object.
 */
export function historyOf(messages: readonly Message[], target: Target): History {
  const contents = new Contents(target.mapping)
  const { maker, showsResults } = familyOf(target.mapping)
  const ids = new UniqueNames(maker === 'mistral' ? shortId : plainId)
  const system: Block[] = []
  const drafts: Draft[] = []
  const slots = new PendingToolCalls<Slot>(({ result }) => result !== undefined)
  const toolsUsed = new Set<string>()
  const draft = (role: ConverseTurn['role']): Draft => turnOf(drafts, role, () => ({ role, content: [], slots: [] }))

  messages.forEach((message, i) => {
    const at = `messages[${i}]`
    switch (message.role) {
      case 'system':
      case 'developer': {
        const blocks = contents.texts(message, at)
        if (drafts.length === 0) append(system, blocks)
        else if (blocks.length > 0) append(draft('user').content, blocks.map(reminder))
        break
      }
      case 'user': {
        const blocks = contents.blocks(message.content, at)
        if (blocks.length > 0) append(draft('user').content, blocks)
        break
      }
      case 'assistant': {
        const content = contents.texts(message, at)
        // Reasoning without text or calls is no turn.
        if (content.length === 0 && !message.tool_calls?.length) break
        const turn = draft('assistant')
        const thoughts = replayReasoning(message, target)
        // In a turn with reasoning, the first block must be reasoning (docs/contract.md#messages).
        if (turn.content[0] && !isThought(turn.content[0])) turn.content.unshift(...thoughts)
        else append(turn.content, thoughts)
        append(turn.content, content)
        for (const call of functionCalls(message, at)) {
          const slot: Slot = { id: ids.unique(call.id), result: undefined }
          turn.slots.push(slot)
          slots.add(call.id, slot, turn)
          const name = shortName(call.function.name)
          toolsUsed.add(name)
          const input = objectArguments(call.function.arguments)
          turn.content.push({ toolUse: { toolUseId: slot.id, name, input } })
        }
        break
      }
      case 'tool':
      case 'function': {
        const slot = slots.answeredBy(message, at)
        const point = cachePoint(resultMarkOf(message), target.mapping)
        const marks = MAKERS_WITH_STATUS.has(maker)
        const output = outputOf(marks ? message.content : resultWithErrorText(message), at, contents)
        const status = marks && message.is_error === true ? 'error' : undefined
        const media = showsResults ? [] : output.filter(block => !('text' in block))
        if (media.length > 0) slot.shown = [textBlock(shownFor({ ...message, tool_call_id: slot.id }).text), ...media]
        const told = media.length > 0 ? output.filter(block => 'text' in block) : output
        slot.result = [resultBlock(slot.id, told, media.length > 0 ? SHOWN_NEXT : 'No output', status), ...point]
        draft('user')
        break
      }
    }
  })
  return { system, turns: alternate(drafts), toolsUsed }
}

/** Makers whose models accept the status of a result. */
const MAKERS_WITH_STATUS: ReadonlySet<Family['maker']> = new Set(['anthropic', 'amazon'])
/** True for a block of reasoning. */
export const isThought = (block: Block): boolean => 'reasoningContent' in block
/** True for the block that answers a tool call. */
export const isResult = (block: Block): boolean => 'toolResult' in block

const reminder = (block: Block): Block =>
  'text' in block ? textBlock(`<system-reminder>${block.text}</system-reminder>`) : block

function outputOf(content: Message['content'], at: string, contents: Contents): Block[] {
  const blocks = contents.blocks(content, at, false)
  if (blocks.every(block => !('audio' in block))) return blocks
  throw errors.unsupported('The result of a tool may hold text, images, documents and video.', `${at}.content`)
}

/** A result contains no cache point, so a part's cache point follows it; the result's own takes precedence. */
const resultMarkOf = ({ content, tool_result_cache_control: own }: Message) =>
  own ?? (Array.isArray(content) ? content.map(markOf).findLast(mark => mark !== undefined) : undefined)

const resultBlock = (toolUseId: string, content: Block[], otherwise: string, status?: 'error'): Block => ({
  toolResult: { toolUseId, content: content.length > 0 ? content : [textBlock(otherwise)], ...(status && { status }) },
})

/** Moves every result directly after its call and merges adjacent turns of one role. */
function alternate(drafts: readonly Draft[]): ConverseTurn[] {
  const turns: ConverseTurn[] = []
  const add = (role: ConverseTurn['role'], content: Block[]) => {
    if (content.length > 0) append(turnOf(turns, role, () => ({ role, content: [] })).content, content)
  }
  for (const { role, content, slots } of drafts) {
    add(role, content)
    add(
      'user',
      slots.flatMap(({ id, result }) => result ?? [resultBlock(id, [], 'No result')]),
    )
    add(
      'user',
      slots.flatMap(({ shown }) => shown ?? []),
    )
  }
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', content: [textBlock('.')] })
  for (const { content } of turns) {
    // The wire rejects a document without text beside it.
    if (content.some(block => 'document' in block) && !content.some(block => 'text' in block)) {
      content.push(textBlock('.'))
    }
  }
  return turns
}
