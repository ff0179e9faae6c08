/** Remarks on standard error beside an answer: progress, provider and cost. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Io } from './io.ts'

const REMARK_MS = 10_000

/** Resolves as `work` does. Meanwhile, reports every ten seconds on `io` that the `what` is in progress. */
export async function remarkWhile<T>(what: string, io: Io | undefined, work: () => Promise<T>): Promise<T> {
  let seconds = 0
  const waiting = setInterval(() => {
    seconds += REMARK_MS / 1000
    io?.progress?.(`waiting for the ${what}: ${seconds} s\n`)
  }, REMARK_MS)
  try {
    return await work()
  } finally {
    clearInterval(waiting)
  }
}

type Served = ReturnType<typeof servedOf>
/** Reads provider, model and cost from the head of an answer; the cost is absent when known only at its end. */
export function servedOf(headers: IncomingHttpHeaders) {
  const text = (name: string) => headers[name]?.toString()
  return { provider: text('x-gateway-provider'), model: text('x-gateway-model'), cost: text('x-gateway-cost') }
}

/** `[openai/gpt-4o-transcribe, $0.006]`, with `otherwise` for an absent cost. */
export function showServed({ provider, model, cost }: Served, io: Io, otherwise: string): void {
  if (provider !== undefined) io.err(`[${provider}/${model}, ${cost === undefined ? otherwise : `$${cost}`}]\n`)
}
