/** The loop of tool calls that a conversation ends in: one turn to Claude, however many messages it takes. */

interface LoopTurn<Block> {
  readonly role: string
  content?: string | Block[]
}

/** What the assistant said in the loop that waits for its next step; empty for a conversation that ends otherwise. */
export function openLoop<T extends LoopTurn<Block>, Block>(
  turns: readonly T[],
  isResult: (block: Block) => boolean,
): T[] {
  const loop: T[] = []
  if (turns.at(-1)?.role === 'assistant') return loop
  for (let i = turns.length - 1; i >= 0; i--) {
    const turn = turns[i]!
    if (turn.role === 'assistant') loop.unshift(turn)
    else if (turn.role === 'user' && !blocksOf(turn).some(isResult)) break
  }
  return loop
}

/**
 * Whether a loop began without a thought, because another provider began it or the client did not send the thought
 * back: the wire refuses to go on with it under a thinking budget.
 */
export function beganWithoutThought<Block>(
  [first]: readonly LoopTurn<Block>[],
  isThought: (block: Block) => boolean,
): boolean {
  const [opening] = first ? blocksOf(first) : []
  return opening !== undefined && !isThought(opening)
}

/** Leaves its thoughts out of a loop: the wire refuses them where it goes on without thinking. */
export function dropThoughts<Block>(loop: readonly LoopTurn<Block>[], isThought: (block: Block) => boolean): void {
  for (const turn of loop) {
    const left = blocksOf(turn).filter(block => !isThought(block))
    if (left.length > 0) turn.content = left
  }
}

const blocksOf = <Block>({ content }: LoopTurn<Block>): readonly Block[] => (Array.isArray(content) ? content : [])
