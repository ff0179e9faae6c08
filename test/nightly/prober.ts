/** Small requests of one tenant: forked by tests, so that no work of theirs delays it. */
import { clients, pace, question } from './load.ts'

export interface Probing {
  readonly url: string
  readonly key: string
  readonly model: string
}

/** What was measured between `begin` and `end`. */
export interface Probed {
  /** In milliseconds. */
  readonly times: number[]
  /** Answers other than 200. */
  readonly failures: string[]
}

const PER_SECOND = 20

const { url, key, model } = JSON.parse(process.argv[2]!) as Probing
const tenant = clients(url, key)
let over = false

process.on('message', (order: 'begin' | 'end') => {
  if (order === 'end') over = true
  else void probe()
})
process.on('disconnect', () => process.exit())
process.send!('ready')

async function probe(): Promise<void> {
  const probed: Probed = { times: [], failures: [] }
  over = false
  await pace(
    PER_SECOND,
    () => !over,
    async () => {
      const { status, ms, text, error } = await tenant.ask(question(model))
      if (status === 200) probed.times.push(ms)
      else probed.failures.push(error ?? `${status}: ${text.slice(0, 200)}`)
    },
  )
  process.send!(probed)
}
