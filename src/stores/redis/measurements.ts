/** Measurements of offers that all nodes share: each publishes its samples four times a second. */
import type { Sample } from '../../core/ports.ts'
import { MemoryMeasurements } from '../memory/measurements.ts'

/** Delay after the first sample with which samples are published together. */
const GATHER_MS = 250
/** Samples that a node publishes at a time; further ones count in that node alone. */
const MAX_PUBLISHED_SAMPLES = 512

/** A sample as nodes publish it. */
export type PublishedSample = readonly [offer: string, org: string, sample: Sample]

/** The measurements of this process, with the samples of others. */
export class SharedMeasurements extends MemoryMeasurements {
  readonly #publish: (samples: readonly PublishedSample[]) => void
  #gathered: PublishedSample[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(publish: (samples: readonly PublishedSample[]) => void) {
    super()
    this.#publish = publish
  }

  override add(offer: string, sample: Sample, org: string): void {
    super.add(offer, sample, org)
    if (this.#gathered.length >= MAX_PUBLISHED_SAMPLES) return
    this.#gathered.push([offer, org, sample])
    this.#timer ??= setTimeout(() => this.flush(), GATHER_MS).unref()
  }

  /** Adds samples of another node. */
  learn(samples: readonly PublishedSample[]): void {
    for (const [offer, org, sample] of samples) super.add(offer, sample, org)
  }

  /** Publishes the gathered samples. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const samples = this.#gathered
    this.#gathered = []
    if (samples.length > 0) this.#publish(samples)
  }
}
