/** Remarks on standard error that an answer is still to come. */
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
