/**
 * Loaded before the tests (`--import`): values that are plainly equal, or plainly match, pass at once. tap compares by
 * making a text of every entry, which took a third of the unit tests' time. All that this does not decide, tap decides.
 */
import { isDeepStrictEqual } from 'node:util'
import { Assertions } from '@tapjs/asserts'

for (const name of ['same', 'strictSame']) quicken(name, isDeepStrictEqual)
quicken('match', plainlyMatches)

/** Has an assertion compare two equal values in place of those that `decides` has found to pass. */
function quicken(name, decides) {
  const assertion = Assertions.prototype[name]
  Assertions.prototype[name] = function (found, wanted, ...more) {
    return decides(found, wanted)
      ? assertion.call(this, true, true, ...more)
      : assertion.call(this, found, wanted, ...more)
  }
}

/** Whether texts, expressions, arrays and plain objects match by the rules of `t.match`; false leaves it to tap. */
function plainlyMatches(found, pattern) {
  if (found === pattern) return true
  if (typeof found === 'string') {
    if (pattern instanceof RegExp) return !pattern.global && !pattern.sticky && pattern.test(found)
    return pattern === String || (typeof pattern === 'string' && pattern !== '' && found.includes(pattern))
  }
  if (typeof found !== 'object' || typeof pattern !== 'object' || found === null || pattern === null) return false
  if (Array.isArray(pattern)) {
    if (!Array.isArray(found) || found.length !== pattern.length) return false
  } else if (!isPlain(found) || !isPlain(pattern)) return false
  return Object.keys(pattern).every(key => Object.hasOwn(found, key) && plainlyMatches(found[key], pattern[key]))
}

function isPlain(value) {
  return Object.getPrototypeOf(value) === Object.prototype
}
