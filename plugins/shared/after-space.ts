/** White space between the values of JSON, as bytes. */
const SPACE = 0x20

/** The index from `from` on of the first byte that is no white space, or the length of `bytes`. */
export function afterSpace(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at]! <= SPACE) at++
  return at
}
