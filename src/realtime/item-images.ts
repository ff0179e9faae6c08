/** Images of a conversation: data alone, since nothing is fetched for a session, and a provider within the network might. */
import { isObject, listIn } from '../json/json.ts'
import { EventError } from './events.ts'

const DATA = /^data:/i

/** Throws an EventError for an image of `item` that is no data URL; `at` is the item's path. */
export function checkImages(item: unknown, at: string): void {
  if (!isObject(item)) return
  for (const field of ['content', 'output']) {
    for (const [index, part] of listIn(item[field]).entries()) {
      if (!isObject(part) || part.image_url == null) continue
      if (typeof part.image_url === 'string' && DATA.test(part.image_url)) continue
      const param = `${at}.${field}[${index}].image_url`
      throw new EventError('invalid_request', `${param}: must be a data URL; addresses are not fetched here`, param)
    }
  }
}
