/** Redirects of addresses that others gave. */
import { errors } from '../core/error.ts'
import { urlOf } from '../lib/url.ts'

/** Each is checked anew. */
export const MAX_REDIRECTS = 3
/** Statuses whose `location` is followed. */
export const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * The answer at an address that a provider gave, behind at most `MAX_REDIRECTS` redirects. `get` is called with each
 * address in turn, and must check whether it may be fetched from; `locationOf` reads the header of that name. Rejects
 * with a 502 for what is not a URL, and for more redirects.
 */
export async function followRedirects<A extends { readonly status: number; destroy?(): void }>(
  address: string,
  get: (url: URL) => Promise<A>,
  locationOf: (answer: A) => string | undefined,
): Promise<A> {
  let url = urlOf(address)
  if (!url) throw errors.invalidAnswer('an address in it is not a URL')
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const answer = await get(url)
    const location = locationOf(answer)
    if (!REDIRECTS.has(answer.status) || location === undefined) return answer
    answer.destroy?.()
    url = urlOf(location, url)
    if (!url) throw errors.invalidAnswer('a redirect of an address in it is not a URL')
  }
  throw errors.invalidAnswer('an address in it redirects too often')
}
