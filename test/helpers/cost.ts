/** The cost of a chat answer as its client knows it. */
import { readEvents } from './sse.ts'

interface Answer {
  usage: { cost: number }
  choices: { finish_reason: string | null }[]
}

/** Returns the cost in nano-USD that an answer tells once all of it is here; undefined when it was cut short. */
export async function costOf(response: Response, stream: boolean): Promise<number | undefined> {
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  const { data, terminator } = stream
    ? await readEvents<Answer>(response)
    : { data: [(await response.json()) as Answer], terminator: '[DONE]' }
  const finished = data.some(({ choices }) => choices?.some(choice => choice.finish_reason === 'stop'))
  return finished && terminator ? Math.round(data.at(-1)!.usage.cost * 1e9) : undefined
}
