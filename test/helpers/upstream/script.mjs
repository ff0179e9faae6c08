/** What each provider will answer next, and the answers that are held until a test releases them. */

/** Names that a step may have; `Step` of `test/helpers/upstream.ts` describes them. */
const names = new Set(
  `status headers body delayMs text chunks refusal reasoning toolCalls usage finish chunkDelayMs raw socket fault afterChunks
  hold unframed`.split(/\s+/),
)
const faults = new Set(
  `refuse reset fin stall error-in-200 error-first-event error-event html empty truncate trickle flood103 wrong-type
  early`.split(/\s+/),
)

export class Script {
  /** @type {Map<string, object[]>} */
  #steps = new Map()
  /** @type {Map<string, Set<() => void>>} */
  #held = new Map()

  /**
   * Replaces the scripts of the prefixes that are named. Throws for anything that would be silently ignored.
   * @param {Record<string, object[]>} scripts steps by prefix: `/` or `/a`
   */
  set(scripts) {
    for (const [prefix, steps] of Object.entries(scripts)) {
      if (!prefix.startsWith('/')) throw new Error(`prefix "${prefix}" must start with "/"`)
      if (!Array.isArray(steps) || steps.length === 0) throw new Error(`script of "${prefix}" must have a step`)
      for (const step of steps) {
        const unknown = Object.keys(step).find(name => !names.has(name))
        if (unknown) throw new Error(`unknown field "${unknown}" in a step; known are ${[...names].join(', ')}`)
        if (step.fault !== undefined && !faults.has(step.fault)) {
          throw new Error(`unknown fault "${step.fault}"; known are ${[...faults].join(', ')}`)
        }
      }
      this.#steps.set(prefix, [...steps])
    }
  }

  peek(prefix) {
    return this.#steps.get(prefix)?.[0] ?? {}
  }

  /** Takes the next step; the last one stays. */
  next(prefix) {
    const steps = this.#steps.get(prefix)
    if (!steps) return {}
    return steps.length > 1 ? steps.shift() : steps[0]
  }

  clear() {
    this.#steps.clear()
  }

  /** Resolves when the prefix is released; rejects when `gone` fires first. */
  held(prefix, gone) {
    return new Promise((resolve, reject) => {
      const waiting = this.#held.get(prefix) ?? new Set()
      this.#held.set(prefix, waiting.add(resolve))
      gone.addEventListener('abort', () => {
        waiting.delete(resolve)
        reject(gone.reason)
      })
    })
  }

  /** Lets the held answers of a prefix go on, or all of them. */
  release(prefix) {
    for (const [held, waiting] of this.#held) {
      if (prefix !== null && held !== prefix) continue
      for (const resolve of waiting) resolve()
      waiting.clear()
    }
  }
}
