/** Load on gateways that are restarted in turn. */
import { type Clients, pace, question } from './load.ts'

const SHARE_OF_STREAMS = 0.7
/** A machine with too little to give sends fewer requests a second, in place of ever more at a time. */
const MAX_IN_FLIGHT = 128

/** What clients have seen. */
export interface Rolled {
  /** Milliseconds of each request that was answered whole. */
  readonly times: number[]
  /** Requests that got an error, or no answer. */
  readonly failures: string[]
  /** Answers that began and did not come whole. */
  readonly broken: string[]
  /** Requests a second. */
  readonly rate: number
}

interface Roll<Node> {
  readonly nodes: readonly Node[]
  readonly rounds: number
  readonly perSecond: number
  readonly ask: Clients['ask']
  /** Resolves when the node serves again. */
  restart(node: Node): Promise<unknown>
}

/** Restarts each node in each round while chat requests are sent, of which most are streams. */
export async function rollUnderLoad<Node>({ nodes, rounds, perSecond, ask, restart }: Roll<Node>): Promise<Rolled> {
  const rolled = { times: [] as number[], failures: [] as string[], broken: [] as string[] }
  let rolling = true
  let [sent, inFlight] = [0, 0]
  const start = performance.now()
  const send = async (n: number) => {
    if (inFlight >= MAX_IN_FLIGHT) return
    inFlight++
    sent++
    const stream = n % 10 < SHARE_OF_STREAMS * 10
    const { status, text, ms, error } = await ask(question('test', { stream }))
    inFlight--
    const isWhole = stream
      ? text.trimEnd().endsWith('data: [DONE]') && !text.includes('"error"')
      : text.includes('"finish_reason":"stop"')
    if (status === 200 && isWhole) rolled.times.push(ms)
    else (status === 200 ? rolled.broken : rolled.failures).push(`${status} ${error ?? text.slice(-500)}`)
  }
  const roll = async () => {
    for (let round = 0; round < rounds; round++) for (const node of nodes) await restart(node)
    rolling = false
  }
  await Promise.all([roll(), pace(perSecond, () => rolling, send)])
  return { ...rolled, rate: (sent * 1000) / (performance.now() - start) }
}
