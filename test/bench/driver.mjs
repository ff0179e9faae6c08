/** The load generator: sends one kind of request many times, checks every answer, tells how long each took. */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

const SILENCE_MS = 30_000
/** Held streams that are being opened at the same time. */
const OPENING = 50

/**
 * @typedef {object} Target
 * @property {string} name
 * @property {string} url without a path
 * @property {Record<string, string | undefined>} models by the wire of their provider; others are not asked for
 * @property {Record<string, string>} headers
 * @property {number} [pid] of the process whose CPU time and memory count; without it they are not told
 * @property {boolean} [pipes] it answers in the provider's wire
 *
 * @typedef {object} Shot
 * @property {string} path
 * @property {Buffer} body
 * @property {string} [contentType] of the body; JSON where nothing is said
 * @property {Record<string, string>} [headers] beside those of the target
 * @property {(answer: string) => void} check throws for an answer that is not complete and correct
 * @property {() => void} [onData] called with every piece of the answer
 *
 * @typedef {{ firstMs: number, totalMs: number }} Latency from sending to the first byte of the body, and to its end
 */

/** Keep-alive connections to one target. */
export class Client {
  #pool
  #headers

  /** @param {Target} target @param {number} connections */
  constructor({ url, headers }, connections) {
    this.#pool = new Pool(url, {
      connections,
      pipelining: 1,
      headersTimeout: SILENCE_MS,
      bodyTimeout: SILENCE_MS,
    })
    this.#headers = { 'content-type': 'application/json', ...headers }
  }

  /** Sends one request and checks its answer. @param {Shot} shot @returns {Promise<Latency>} */
  async shoot({ check, ...shot }) {
    const { status, text, ...latency } = await new Promise((resolve, reject) => this.#dispatch(shot, resolve, reject))
    if (status !== 200) throw new Error(`answered ${status}: ${text.slice(0, 500)}`)
    check(text)
    return latency
  }

  /**
   * Opens `count` streams that stay open until `close`; resolves when each has had its first byte, with a function
   * that tells how many are open still. What they say is dropped.
   */
  async hold(shot, count) {
    let left = count
    let open = count
    const work = async () => {
      while (left-- > 0) {
        await new Promise((resolve, reject) => {
          const lose = ({ status, text, message }) => {
            open--
            reject(new Error(message ?? `a held stream ended with ${status}: ${text.slice(0, 500)}`))
          }
          this.#dispatch(shot, lose, lose, resolve)
        })
      }
    }
    await Promise.all(Array.from({ length: OPENING }, work))
    return () => open
  }

  /** Cuts off what is open. */
  close() {
    return this.#pool.destroy()
  }

  /** With `onFirst`, the rest of a good answer is dropped. */
  #dispatch({ path, body, contentType, headers, onData }, onEnd, onError, onFirst) {
    const chunks = []
    const start = performance.now()
    let status = 0
    let firstMs = 0
    this.#pool.dispatch(
      {
        method: 'POST',
        path,
        headers: { ...this.#headers, ...headers, ...(contentType && { 'content-type': contentType }) },
        body,
      },
      {
        onRequestStart() {},
        onResponseStart(_controller, code) {
          status = code
        },
        onResponseData(_controller, chunk) {
          if (firstMs === 0) {
            firstMs = performance.now() - start
            if (status === 200) onFirst?.()
          }
          if (!onFirst || status !== 200) chunks.push(chunk)
          onData?.()
        },
        onResponseEnd() {
          onEnd({ status, firstMs, totalMs: performance.now() - start, text: Buffer.concat(chunks).toString() })
        },
        onResponseError(_controller, error) {
          onError(error)
        },
      },
    )
  }
}

/** Sends `count` requests, `concurrency` at a time: the load under which CPU time is counted. */
export async function saturate(client, shot, { count, concurrency }) {
  let left = count
  const work = async () => {
    while (left-- > 0) await client.shoot(shot)
  }
  await Promise.all(Array.from({ length: concurrency }, work))
}

/**
 * Sends `count` requests at `rate` per second, whether or not earlier ones are answered: the load under which latency
 * is told. Under saturation it would tell the length of the queue.
 * @returns {Promise<Latency[]>}
 */
export function pace(client, shot, { count, rate }) {
  const send = async (_, at) => {
    await sleep((at * 1000) / rate)
    return client.shoot(shot)
  }
  return Promise.all(Array.from({ length: count }, send))
}
