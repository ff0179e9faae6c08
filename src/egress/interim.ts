/** Interim answers (1xx): clients bound the head of each, and not how many there are. */

/** Before an answer that is read. */
export const MAX_INTERIM = 16

/** The `onInfo` of one request of undici; throws, which ends the request, beyond `MAX_INTERIM`. */
export function interimBound(): () => void {
  let count = 0
  return () => {
    if (++count > MAX_INTERIM) throw tooMany()
  }
}

const tooMany = (): Error => new Error('the server sends too many interim answers')
