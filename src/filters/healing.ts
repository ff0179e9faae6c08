/** Repairs malformed JSON answers of callers who ask for it (`plugins: [{ id: 'response-healing' }]`). */
import { jsonrepair } from 'jsonrepair'
import type { Event } from '../core/event.ts'
import type { Exchange } from '../core/exchange.ts'
import type { FilterFactory, Reply } from '../core/filter.ts'
import { s } from '../core/schema.ts'

/** A text that is longer is not worth the time that repairing it would keep everybody else waiting. */
const MAX_LENGTH = 1024 * 1024

export const healing: FilterFactory<object> = {
  name: 'healing',
  options: s.object({}),
  create() {
    return {
      handle(ex, next) {
        return next().then(reply => {
          if (wanted(ex)) reply.events = healed(reply.events)
          return reply
        })
      },
    }
  },
}

/** For requests that have been read. Only where JSON was asked for; streams of several choices stay streams (field notes section 12). */
function wanted({ endpoint, request, chat }: Exchange): boolean {
  if (endpoint.op !== 'chat' || !request || !chat.plugins?.some(({ id }) => id === 'response-healing')) return false
  const asked = chat.response_format?.type
  return (asked === 'json_object' || asked === 'json_schema') && !(chat.stream && (chat.n ?? 1) > 1)
}

/** Holds each choice's text until the choice ends, and tells it in one piece. */
async function* healed(events: Reply['events']): AsyncGenerator<readonly Event[]> {
  const texts = new Map<number, string>()
  const told = (choice: number): Event[] => {
    const text = texts.get(choice)
    texts.delete(choice)
    return text === undefined ? [] : [{ type: 'text', choice, text: heal(text) }]
  }
  for await (const batch of events) {
    const out: Event[] = []
    for (const event of batch) {
      if (event.type === 'text') texts.set(event.choice, (texts.get(event.choice) ?? '') + event.text)
      else if (event.type === 'finish') out.push(...told(event.choice), event)
      else if (event.type === 'error') {
        out.push(...[...texts].map(cut), event)
        texts.clear()
      } else out.push(event)
    }
    if (out.length > 0) yield out
  }
  const rest = [...texts.keys()].flatMap(told)
  if (rest.length > 0) yield rest
}

/** Of an answer that broke, what came is told as it came. */
const cut = ([choice, text]: [number, string]): Event => ({ type: 'text', choice, text })

/**
 * Valid JSON as it is; else what stands between the first bracket and its end, freed of a Markdown fence and of words
 * around it, and repaired (commas, quotes, keys, a missing end). A text that holds no JSON stays as it is.
 */
export function heal(text: string): string {
  if (text.length > MAX_LENGTH || isJson(text)) return text
  const fenced = /```(?:json)?\s*\n([\s\S]*?)(?:\n```|$)/i.exec(text)?.[1] ?? text
  const start = fenced.search(/[{[]/)
  if (start < 0) return text
  const body = fenced.slice(start)
  const end = Math.max(body.lastIndexOf('}'), body.lastIndexOf(']'))
  const whole = end < 0 ? body : body.slice(0, end + 1)
  for (const candidate of [whole, body]) {
    if (isJson(candidate)) return candidate
    const repaired = repair(candidate)
    if (repaired !== undefined) return repaired
  }
  return text
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function repair(text: string): string | undefined {
  try {
    const repaired = jsonrepair(text)
    return isJson(repaired) ? repaired : undefined
  } catch {
    // What cannot be repaired is told as it is.
    return undefined
  }
}
