/** Remarks on standard error beside an answer: that it is still to come, and who served it. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Io } from './io.ts'

const REMARK_MS = 10_000

/** What `work` resolves with. While it runs, it says on `io` every ten seconds that the `what` is being made. */
export async function remarkWhile<T>(what: string, io: Io | undefined, work: () => Promise<T>): Promise<T> {
  let seconds = 0
  const waiting = setInterval(() => {
    seconds += REMARK_MS / 1000
    io?.err(`the ${what} is being made: ${seconds} s\n`)
  }, REMARK_MS)
  try {
    return await work()
  } finally {
    clearInterval(waiting)
  }
}

/** What the head of an answer says of who served it; the cost is absent where it is known only at the end. */
export interface Served {
  readonly provider: string | undefined
  readonly model: string | undefined
  readonly cost: string | undefined
}

export function servedOf(headers: IncomingHttpHeaders): Served {
  const text = (name: string) => headers[name]?.toString()
  return { provider: text('x-gateway-provider'), model: text('x-gateway-model'), cost: text('x-gateway-cost') }
}

/** `[openai/gpt-4o-transcribe, $0.006]`, with `otherwise` in the place of a cost that is absent. */
export function showServed({ provider, model, cost }: Served, io: Io, otherwise: string): void {
  if (provider !== undefined) io.err(`[${provider}/${model}, ${cost === undefined ? otherwise : `$${cost}`}]\n`)
}
