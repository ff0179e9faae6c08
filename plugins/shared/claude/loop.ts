/** The tool loop at the end of a conversation: one turn for Claude, however many messages it takes. */

interface LoopTurn<Block> {
  readonly role: string
  content?: string | Block[]
}

/** The assistant turns of the loop that waits for its next step; empty when the conversation does not end in a loop. */
export function openLoop<T extends LoopTurn<Block>, Block>(
  turns: readonly T[],
  isResult: (block: Block) => boolean,
): T[] {
  const loop: T[] = []
  if (turns.at(-1)?.role === 'assistant') return loop
  for (let i = turns.length - 1; i >= 0; i--) {
    const turn = turns[i]!
    if (turn.role === 'assistant') loop.push(turn)
    else if (turn.role === 'user' && !blocksOf(turn).some(isResult)) break
  }
  return loop.reverse()
}

/** Whether the loop began with a thought; undefined where none is open. */
export function beganWithThought<Block>(
  [first]: readonly LoopTurn<Block>[],
  isThought: (block: Block) => boolean,
): boolean | undefined {
  const [opening] = first ? blocksOf(first) : []
  return opening && isThought(opening)
}

/** Removes the thoughts of a loop: the wire rejects them when thinking is off. */
export function dropThoughts<Block>(loop: readonly LoopTurn<Block>[], isThought: (block: Block) => boolean): void {
  for (const turn of loop) {
    const left = blocksOf(turn).filter(block => !isThought(block))
    if (left.length > 0) turn.content = left
  }
}

const blocksOf = <Block>({ content }: LoopTurn<Block>): readonly Block[] => (Array.isArray(content) ? content : [])
