/** Ids of responses and items. An item's id contains its response's, which finds it. */

/** `answer`: id of an answer. */
export const responseId = (answer: string): string => `resp_${answer}`

/** Id of an output item. */
export const itemId = (prefix: string, answer: string, index: number): string => `${prefix}_${answer}_${index}`

/** Id of an item of the request's own input. */
export const inputItemId = (prefix: string, response: string, index: number): string =>
  `${prefix}_${response.slice('resp_'.length)}_in${index}`

const ITEM = /^[a-z]{2,5}_([2-7a-z]{20})_(?:in)?\d{1,7}$/

/** Id of an item's response; undefined for ids of other origin. */
export function responseOf(item: string): string | undefined {
  const answer = ITEM.exec(item)?.[1]
  return answer === undefined ? undefined : responseId(answer)
}
