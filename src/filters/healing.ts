/** Repairs malformed JSON answers of callers who ask for it (`plugins: [{ id: 'response-healing' }]`). */
import type { Event, SourceEvent } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory, Reply } from '../core/filter.ts'
import { s } from '../core/schema.ts'
import { healAside, LARGE } from './heal.ts'

export const healing: FilterFactory<object> = {
  name: 'healing',
  options: s.object({}),
  create() {
    return {
      handle(ex, next) {
        return next().then(reply => {
          if (isHealed(ex)) reply.events = healed(reply.events)
          return reply
        })
      },
    }
  },
}

/**
 * For requests that have been read. Only where JSON was asked for; streams of several choices stay streams (field notes
 * section 12).
 */
export function isHealed({ endpoint, request, chat }: Exchange): boolean {
  if (endpoint.op !== 'chat' || !request || !chat.plugins?.some(({ id }) => id === 'response-healing')) return false
  const asked = chat.response_format?.type
  return (asked === 'json_object' || asked === 'json_schema') && !(chat.stream && (chat.n ?? 1) > 1)
}

/**
 * Holds each choice's text until the choice ends, and tells it in one piece, unless it is too long to heal. What is
 * cited meanwhile comes behind it, without its places in the text if that was healed.
 */
async function* healed(events: Reply['events']): AsyncGenerator<readonly Event[]> {
  const texts = new Map<number, string>()
  const long = new Set<number>()
  const cited = new Map<number, SourceEvent[]>()
  const told = async (choice: number, isAnswer = true): Promise<Event[]> => {
    const original = texts.get(choice)
    if (original === undefined) return []
    const sources = cited.get(choice) ?? []
    texts.delete(choice)
    cited.delete(choice)
    const text = isAnswer ? await healAside(original) : original
    return [{ type: 'text', choice, text }, ...(text === original ? sources : sources.map(withoutPlace))]
  }
  for await (const batch of events) {
    const out: Event[] = []
    for (const event of batch) {
      if (event.type === 'text' && !long.has(event.choice)) {
        const text = (texts.get(event.choice) ?? '') + event.text
        texts.set(event.choice, text)
        if (text.length <= LARGE) continue
        long.add(event.choice)
        texts.delete(event.choice)
        out.push({ ...event, text }, ...(cited.get(event.choice) ?? []))
        cited.delete(event.choice)
      } else if (event.type === 'finish') {
        // What is said along with calls is no answer yet, and need not be JSON.
        out.push(...(await told(event.choice, event.reason !== 'tool_calls')), event)
      } else if (event.type === 'error') {
        out.push(...[...texts].map(cut), ...[...cited.values()].flat(), event)
        texts.clear()
        cited.clear()
      } else if (event.type === 'source' && texts.has(event.choice)) {
        const sources = cited.get(event.choice) ?? []
        sources.push(event)
        cited.set(event.choice, sources)
      } else if ((event.type === 'tool' || event.type === 'phase') && texts.has(event.choice)) {
        // What was said before is no answer either, and stays before them.
        out.push(...(await told(event.choice, false)), event)
      } else out.push(event)
    }
    if (out.length > 0) yield out
  }
  const rest = (await Promise.all([...texts.keys()].map(choice => told(choice)))).flat()
  if (rest.length > 0) yield rest
}

const withoutPlace = ({ start: _, end: _e, ...source }: SourceEvent): SourceEvent => source

/** Of an answer that broke, what came is told as it came. */
const cut = ([choice, text]: [number, string]): Event => ({ type: 'text', choice, text })
