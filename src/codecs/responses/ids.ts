/** Ids of responses and of their items. An item's id names its response, so that it is found by that. */

/** `answer`: id of an answer. */
export const responseId = (answer: string): string => `resp_${answer}`

/** Of an item of the output. */
export const itemId = (prefix: string, answer: string, index: number): string => `${prefix}_${answer}_${index}`

/** Of an item of the request's own input. */
export const inputItemId = (prefix: string, response: string, index: number): string =>
  `${prefix}_${response.slice('resp_'.length)}_in${index}`

const ITEM = /^[a-z]{2,5}_([2-7a-z]{20})_(?:in)?\d{1,7}$/

/** Id of the response that the item is of; undefined for an id that was not made here. */
export function responseOf(item: string): string | undefined {
  const answer = ITEM.exec(item)?.[1]
  return answer === undefined ? undefined : responseId(answer)
}
