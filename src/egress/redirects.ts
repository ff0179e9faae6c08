/** Redirects of addresses that others gave. */
import { errors, GatewayError } from '../lib/error.ts'
import { urlOf } from '../lib/url.ts'

/** The address is not tried: it has neither https on its own port, nor an allowed origin. */
export class AddressNotAllowed extends Error {
  override readonly name = 'AddressNotAllowed'
}

/** Each is checked anew. */
const MAX_REDIRECTS = 3
/** Statuses whose `location` is followed. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** The parts of an answer that decide whether it is a redirect. */
interface Answer {
  readonly status: number
  header(name: string): string | undefined
  destroy?(): void
}

/** Whether an answer names another address in its place. */
export const isRedirect = (answer: Answer): boolean =>
  REDIRECTS.has(answer.status) && answer.header('location') !== undefined

/** The 502 for an address that a provider gave, made of what its fetch has thrown; shows nothing of the address. */
export function providerAddressError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  return thrown instanceof AddressNotAllowed
    ? errors.invalidAnswer('an address in it is not one that may be fetched from')
    : errors.unreachable('an address in its answer cannot be reached')
}

/**
 * The answer at an address, behind at most three redirects. `get` is called with each address in turn, and must check whether
 * it may be fetched from. Rejects with what `refuse` makes, a 502 by default, for what is not a URL and for more redirects.
 */
export async function followRedirects<A extends Answer>(
  address: string,
  get: (url: URL) => Promise<A>,
  refuse: (why: string) => GatewayError = why => errors.invalidAnswer(why),
): Promise<A> {
  let url = urlOf(address)
  if (!url) throw refuse('an address in it is not a URL')
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const answer = await get(url)
    if (!isRedirect(answer)) return answer
    answer.destroy?.()
    url = urlOf(answer.header('location')!, url)
    if (!url) throw refuse('a redirect of an address in it is not a URL')
  }
  throw refuse('an address in it redirects too often')
}
