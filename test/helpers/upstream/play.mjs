/** Puts a program on the socket, counting what the kernel has taken. */
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Plays a program to its end. Rejects with an AbortError when `gone` fires, which is how stalls and floods end.
 * @param {import('./faults.mjs').Program} program
 * @param {object} io
 * @param {import('node:http').ServerResponse} io.res
 * @param {AbortSignal} io.gone fires when the peer has left
 * @param {object} io.step for its `delayMs`, `hold`, `unframed` and `chunkDelayMs`
 * @param {() => Promise<void>} io.gate resolves when a held answer is released
 * @param {(chunks: number) => void} io.sent told of chunks that were written
 * @param {(outcome: 'completed' | 'cut') => Promise<void>} io.ending awaited before the last byte, or before the cut
 */
export async function play({ head, frames, end, bare }, { res, gone, step, gate, sent, ending }) {
  const { socket } = res
  const last = end === 'finish' ? frames.at(-1) : undefined
  let count = 0
  let hold = step.hold ?? Number.POSITIVE_INFINITY
  const rest = async () => {
    if (count < hold) return
    hold = Number.POSITIVE_INFINITY
    await gate()
  }
  const pause = ms => sleep(ms, undefined, { signal: gone })

  if (step.delayMs) await pause(step.delayMs)
  await rest()
  if (head) writeHead(res, head, step.unframed)
  for (const frame of frames) {
    for (let times = frame.times ?? 1; times > 0; times--) {
      if (frame.pauseMs) await pause(frame.pauseMs)
      if (frame !== last || times > 1) await taken(bare ? socket : res, frame.bytes, gone)
      count += frame.chunks
      sent(frame.chunks)
      await rest()
    }
  }
  if (end === 'stall') await pause(2 ** 31 - 1)
  while (end === 'flood') {
    res.writeEarlyHints({ link: '</>; rel=preload' })
    await pause(step.chunkDelayMs ?? 20)
  }
  await ending(end === 'finish' ? 'completed' : 'cut')
  if (end === 'finish') res.end(last?.bytes)
  else if (end === 'fin') socket.end()
  else socket.resetAndDestroy()
}

function writeHead(res, { status, headers }, unframed) {
  res.statusCode = status
  for (const [name, value] of Object.entries(headers)) if (value !== null) res.setHeader(name, value)
  if (unframed) res.useChunkedEncodingByDefault = false
  res.flushHeaders()
}

/** Resolves when the kernel has the bytes; rejects when the peer has left, which a failed write only foretells. */
function taken(stream, bytes, gone) {
  return new Promise((resolve, reject) => {
    const leave = () => reject(gone.reason)
    gone.addEventListener('abort', leave, { once: true })
    stream.write(bytes, error => {
      if (error) return
      gone.removeEventListener('abort', leave)
      resolve()
    })
  })
}
