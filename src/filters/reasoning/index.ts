/**
 * Keeps reasoning that a provider requires back beside tool calls, for clients that drop unknown fields. A turn that
 * comes back without it gets it again.
 */

import { createHash } from 'node:crypto'
import type { Message, ToolCall } from '../../core/chat-request.ts'
import type { Event } from '../../core/event.ts'
import type { Exchange } from '../../core/exchange.ts'
import type { FilterFactory } from '../../core/filter.ts'
import type { TurnStore } from '../../core/ports.ts'
import type { Reply } from '../../core/reply.ts'
import { type Infer, s } from '../../core/schema.ts'
import type { SealCheck } from '../../core/seals.ts'
import { WorkBudget, writeCanonical } from '../../json/canonical.ts'
import { isObject, jsonIn } from '../../json/json.ts'
import { MAX_VALUES } from '../../json/shape.ts'
import { ownerOf } from '../../policy/owner.ts'
import { addDetail, type ReasoningDetail } from '../../wire/fold.ts'
import { withoutSpace } from '../../wire/wire.ts'
import { type KeptCall, KeptReasoning } from './kept-reasoning.ts'

const options = s.object({
  /** How long it is kept, in the memory of the response cache. */
  keep: s.default(s.duration(), '1h'),
})

/** Only for client wires whose codec has `dropsReasoning`, and requests with tools. */
export const reasoning: FilterFactory<Infer<typeof options>> = {
  name: 'reasoning',
  options,
  needs: ['principal', 'target'],
  appliesTo: ({ codec }) => codec.dropsReasoning === true,
  create({ keep }, { turns }) {
    return {
      handle(ex, next) {
        const { tools } = ex.chat
        return tools?.length && ex.caller.policy?.keepsReplies !== false ? kept(ex, next, turns, keep) : next()
      },
    }
  },
}

async function kept(ex: Exchange, next: () => Promise<Reply>, turns: TurnStore, keepMs: number): Promise<Reply> {
  await recall(ex, turns)
  const { status, headers, events } = await next()
  const owner = keptFor(ex)
  const set = (call: KeptCall, reasoning: readonly Event[], bytes: number) => {
    const { provider, model, externalId } = ex.target!.mapping
    const { logId, at } = ex
    const { model: requestedModel, provider: requestedProvider } = ex.requested
    const answer = { provider: provider.id, model: model.id, externalId, logId, at }
    const entry = { events: reasoning, ...answer }
    const key = keyOf(owner, call, { characters: MAX_PARSED_CHARACTERS })
    turns.set(key, Object.assign(entry, { requestedModel, requestedProvider }), bytes, keepMs, owner[0])
  }
  return { status, headers, events: new KeptReasoning(events, set) }
}

/** Owner of a conversation. Some providers count ids from 0 in each conversation, so owners must not share entries. */
type Owner = readonly [organization: string, project: string, endUser: string]

function keptFor({ caller: { principal } }: Exchange): Owner {
  const { orgId, projectId, session = '' } = ownerOf(principal!)
  return [orgId, projectId, session]
}

/**
 * Ids may come again: name and arguments tell calls of one id apart. Clients write arguments anew, with other escapes,
 * numbers and white space, so the key has their canonical form. `budget`: characters that may still be parsed.
 */
function keyOf(owner: Owner, { id, name, args }: KeptCall, budget: { characters: number }): string {
  const hash = createHash('sha256').update(JSON.stringify(['reasoning', ...owner, id, name]))
  budget.characters -= args.length
  const parsed = budget.characters < 0 ? undefined : jsonIn(args)
  if (!isObject(parsed) || !writeCanonical(parsed, hash, new WorkBudget(MAX_VALUES, MAX_PARSED_CHARACTERS)))
    hash.update(withoutSpace(args))
  return hash.digest('base64')
}

/** Characters of arguments that are parsed for the keys of one request. */
const MAX_PARSED_CHARACTERS = 4 * 1024 * 1024
/** Turns of one request that are looked up. */
const MAX_TURNS = 256

async function recall(ex: Exchange, turns: TurnStore): Promise<void> {
  const { messages, reasoning, reasoning_effort: effort } = ex.chat
  const owner = keptFor(ex)
  /** Places of messages, the last first, by what their turns are kept under. */
  const places = new Map<string, number>()
  const budget = { characters: MAX_PARSED_CHARACTERS }
  for (let place = messages.length - 1; place >= 0 && places.size < MAX_TURNS; place--) {
    const message = messages[place]!
    const [call] = message.tool_calls ?? []
    if (call?.type !== 'function' || isWhole(message)) continue
    const { name, arguments: args } = call.function
    places.set(keyOf(owner, { id: call.id, name, args }, budget), place)
  }
  if (places.size === 0) return
  const looked = turns.find([...places.keys()], owner[0])
  const found = looked instanceof Promise ? await looked : looked
  if (found.size === 0) return
  // Some providers refuse thoughts in requests without reasoning, and require the signatures of calls in all.
  const thinks = reasoning != null || (effort != null && effort !== 'none')
  const seals = ex.caller.policy?.seals.check()
  const changed = [...messages]
  for (const [key, { events }] of found) {
    const place = places.get(key)!
    const replayed = thinks ? events : events.filter(({ type }) => type === 'tool')
    changed[place] = restored(messages[place]!, replayed, seals)
  }
  ex.request = Object.assign({}, ex.chat, { messages: changed })
}

/** Whether it brings back what its provider signed, or the client has changed that: false seals are empty texts. */
const isWhole = ({ reasoning_details: details, tool_calls: calls }: Message): boolean =>
  details?.some(({ signature, data }) => typeof (signature ?? data) === 'string') === true ||
  calls!.some(call => typeof call.extra_content?.vendor?.thought_signature === 'string')

function restored(message: Message, events: readonly Event[], seals: SealCheck | undefined): Message {
  const open = (value: string | undefined) => (value === undefined ? undefined : seals ? seals.value(value) : value)
  const details: ReasoningDetail[] = []
  const signatures = new Map<string, string>()
  let reasoning = ''
  for (const event of events) {
    if (event.type === 'reasoning') {
      const { signature, data, ...rest } = event
      const [own, hidden] = [open(signature), open(data)]
      reasoning += event.text
      addDetail(
        details,
        Object.assign(rest, own !== undefined && { signature: own }, hidden !== undefined && { data: hidden }),
      )
    } else if (event.type === 'tool' && event.id !== undefined) {
      const signature = open(event.signature)
      if (signature !== undefined) signatures.set(event.id, signature)
    }
  }
  const whole: Message = Object.assign({}, message)
  if (details.length > 0) whole.reasoning_details = details
  if (reasoning !== '' && message.reasoning == null) whole.reasoning = reasoning
  whole.tool_calls = message.tool_calls!.map((call): ToolCall => {
    const signature = signatures.get(call.id)
    return signature === undefined
      ? call
      : Object.assign({}, call, { extra_content: { vendor: { thought_signature: signature } } })
  })
  return whole
}
