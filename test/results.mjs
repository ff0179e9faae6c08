/** Counts assertions, and keeps what failed and how long files took. */
import { Parser } from 'tap-parser'

export class Results {
  pass = 0
  fail = 0
  skip = 0
  /** Texts to print. */
  failures = []
  /** Seconds by file. */
  times = new Map()

  get total() {
    return this.pass + this.fail + this.skip
  }

  /** Adds what another one has counted. */
  add({ pass, fail, skip, failures, times }) {
    this.pass += pass
    this.fail += fail
    this.skip += skip
    this.failures.push(...failures)
    for (const [name, seconds] of times) this.times.set(name, seconds)
  }

  /** Reads the TAP of one process; `name` is its file or entry. @returns {Parser} to pipe to */
  parser(name) {
    const parser = new Parser()
    this.#watch(parser, [name])
    return parser
  }

  /** Something failed of which no assertion tells. */
  failed(path, why) {
    this.fail++
    this.failures.push(`✗ ${path.join('\n  > ')}\n${typeof why === 'string' ? why : JSON.stringify(why, null, 2)}`)
  }

  #watch(parser, path) {
    /** Failures before the subtest whose own result comes next. */
    let before
    parser.on('child', child => {
      before = this.fail
      this.#watch(child, [...path, child.name])
    })
    parser.on('assert', ({ ok, name, skip, todo, diag, time }) => {
      const isSubtest = before !== undefined
      const isTold = isSubtest && this.fail > before
      before = undefined
      if (path.length === 1 && isSubtest && name.endsWith('.test.ts')) this.times.set(name, time / 1000)
      if (skip || todo) {
        this.skip++
        console.log(`skipped: ${[...path, name].join(' > ')} # SKIP ${skip || todo}`)
      } else if (!ok && !isTold) this.failed([...path, name], diag)
      else if (ok && !isSubtest) this.pass++
    })
  }
}
