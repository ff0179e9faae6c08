/** Media at private hosts, which providers do not reach: `server.fetch_from` lists their origins. */
import type { Exchange } from '../../core/exchange.ts'
import type { Target } from '../../core/translator.ts'
import { isPublicUrl } from './addresses.ts'
import { fileAddressesIn } from './files.ts'
import { addressesIn } from './images.ts'

/** Which requests are sent with data alone. Each exchange is judged once, before anything is fetched for it. */
export class PrivateHosts {
  readonly #judged = new WeakMap<Exchange, boolean>()

  /** Whether `target` gets data in the place of every address. */
  inlines(ex: Exchange, { provider }: Target): boolean {
    if (provider.inlineMedia) return true
    const judged = this.#judged.get(ex)
    if (judged !== undefined) return judged
    const images = addressesIn(ex.request!)
    const files = fileAddressesIn(ex.request!)
    if (images.size + files.size === 0) return false
    const isPrivate = ![...images.keys(), ...files.keys()].every(isPublicUrl)
    this.#judged.set(ex, isPrivate)
    return isPrivate
  }
}
