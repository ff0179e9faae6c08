/** Chat requests with several prompts, each answered separately. */

import type { ChatRequest } from '../../core/chat-request.ts'
import type { Event } from '../../core/event.ts'
import type { FanOut } from '../../core/translator.ts'

/** Each prompt is a request of its own; choices are renumbered in the order of the prompts. */
export const promptFanOut: FanOut<'chat'> = {
  ordered: true,
  count: ({ prompts, messages }) => (prompts ? messages.length : 1),
  split(request) {
    if (!request.prompts) return [request]
    const { prompts: _, messages, ...rest } = request
    return messages.map((message): ChatRequest => Object.assign({ messages: [message] }, rest))
  },
  /** Choices of the first prompt, then those of the second. */
  join(answers) {
    const width = Math.max(...answers.map(choicesIn))
    return answers.flatMap((events, place) => events.map(event => moved(event, place * width)))
  },
}

const choicesIn = (events: readonly Event[]): number =>
  events.reduce((most, event) => ('choice' in event ? Math.max(most, event.choice + 1) : most), 0)

const moved = (event: Event, by: number): Event =>
  'choice' in event && by > 0 ? Object.assign({}, event, { choice: event.choice + by }) : event
