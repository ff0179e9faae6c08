/** Notes now and then what running streams have cost, so that a crash loses the charge for their last moments only. */
import type { Exchange } from '../core/exchange.ts'
import type { Hold, Services } from '../core/ports.ts'

const EVERY_MS = 2_000

interface Running {
  readonly hold: Hold
  /** Completion tokens that the last note told of. */
  noted: number
}

export class Checkpoints {
  readonly #services: Pick<Services, 'ledger' | 'log'>
  readonly #running = new Map<Exchange, Running>()
  #timer: NodeJS.Timeout | undefined

  constructor(services: Pick<Services, 'ledger' | 'log'>) {
    this.#services = services
  }

  begin(ex: Exchange, hold: Hold): void {
    this.#running.set(ex, { hold, noted: 0 })
    this.#timer ??= setInterval(() => this.#note(), EVERY_MS).unref()
  }

  end(ex: Exchange): void {
    if (!this.#running.delete(ex) || this.#running.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #note(): void {
    const { ledger, log } = this.#services
    for (const [ex, running] of this.#running) {
      const { usage, cost } = ex.soFar
      if (ex.marks.firstToken === 0 || usage.completion === running.noted) continue
      running.noted = usage.completion ?? 0
      ledger
        .checkpoint(running.hold, { usage, cost: cost?.total ?? null })
        .catch((err: unknown) =>
          log.warn({ err, hold: running.hold.id }, 'the progress of a stream could not be noted'),
        )
    }
  }
}
