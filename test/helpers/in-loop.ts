/** Numbers the turns of the event loop until `work` has ended. */
export async function inLoop<T>(work: (turn: () => number) => Promise<T>): Promise<T> {
  let turn = 0
  let ended = false
  const count = (): void => {
    turn++
    if (!ended) setImmediate(count)
  }
  setImmediate(count)
  const result = await work(() => turn)
  ended = true
  return result
}
