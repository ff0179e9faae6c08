/**
 * The upstream's record: what came in and what went out. Checks of money compare the gateway's ledger with it, so
 * a request's lines are on disk before the last byte of its answer is sent.
 */
import { createHash } from 'node:crypto'
import { fsync, openSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'

/**
 * @typedef {object} Entry one request; `test/helpers/upstream.ts` describes the fields
 * @property {number} id
 * @property {string} prefix
 * @property {'completed' | 'aborted' | 'cut' | null} outcome
 * @property {number} chunksSent
 */

const credentials = new Set([
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'proxy-authorization',
  'cookie',
])

const sha256 = text => createHash('sha256').update(text).digest('hex')

/**
 * A credential as the record shows it: the scheme and a fingerprint, enough to tell two keys apart and nothing more.
 * @param {string} value `Bearer sk-1` or a bare key
 */
export function masked(value) {
  const [, scheme = '', secret] = /^(\S+ )?(.*)$/s.exec(value)
  return `${scheme}sha256:${sha256(secret).slice(0, 12)}`
}

/**
 * Headers in the order of arrival by lower-case name; values of a repeated name are joined by ", ".
 * @param {string[]} rawHeaders
 */
function maskHeaders(rawHeaders) {
  /** @type {Record<string, string>} */
  const headers = {}
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i].toLowerCase()
    const value = credentials.has(name) ? masked(rawHeaders[i + 1]) : rawHeaders[i + 1]
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value
  }
  return headers
}

const maskQuery = path => path.replace(/([?&](?:api-)?key=)([^&]*)/g, (_, name, key) => name + masked(key))

export class Record {
  #fd
  /** @type {Entry[]} */
  #entries = []
  #lastId = 0
  #watchers = new Set()
  #syncing = Promise.resolve()
  /** @type {Promise<void> | null} */
  #nextSync = null

  constructor(file) {
    this.#fd = openSync(file, 'a')
  }

  /** Notes a request's arrival. */
  begin({ prefix, path, wire, rawHeaders, violations, text = null, body = null, refused = null }) {
    const entry = {
      id: ++this.#lastId,
      at: Date.now(),
      prefix,
      path: maskQuery(path),
      wire,
      model: body?.model ?? null,
      headers: maskHeaders(rawHeaders),
      body,
      sha256: text === null ? null : sha256(text),
      violations,
      refused,
      outcome: null,
      aborted: false,
      abortedAt: null,
      endedAt: null,
      chunksSent: 0,
      tokens: { prompt: 0, completion: 0 },
      usage: null,
    }
    this.#entries.push(entry)
    this.#append({ event: 'begin', ...entry })
    this.#changed()
    return entry
  }

  /** Counts chunks that the socket has taken. */
  sent(entry, chunks) {
    if (chunks === 0) return
    entry.chunksSent += chunks
    this.#changed()
  }

  /** Notes a request's end, of which only the first counts; resolves when all of the request is on disk. */
  async end(entry, outcome, { tokens = entry.tokens, usage = null } = {}) {
    if (entry.outcome !== null) return
    const endedAt = Date.now()
    const aborted = outcome === 'aborted'
    Object.assign(entry, { outcome, aborted, abortedAt: aborted ? endedAt : null, endedAt, tokens, usage })
    const { id, abortedAt, chunksSent } = entry
    this.#append({ event: 'end', id, outcome, aborted, abortedAt, endedAt, chunksSent, tokens, usage })
    this.#changed()
    await this.#durable()
  }

  /** @param {string | null} prefix `/a`, or null for all */
  entries(prefix) {
    return prefix === null ? this.#entries : this.#entries.filter(entry => entry.prefix === prefix)
  }

  /** Forgets what was seen; the file keeps it. */
  clear() {
    this.#entries = []
  }

  /**
   * Resolves once at least `requests` came, `ended` of them ended, and the newest, like every one that still runs,
   * has sent `chunks` chunks.
   * Rejects when `signal` fires first.
   */
  async reached(prefix, { requests = 0, ended = 0, chunks = 0 }, signal) {
    const watched = entries => entries.filter((entry, i) => entry.outcome === null || i === entries.length - 1)
    const isReached = () => {
      const entries = this.entries(prefix)
      return (
        entries.length >= requests &&
        entries.filter(entry => entry.outcome !== null).length >= ended &&
        (chunks === 0 || (entries.length > 0 && watched(entries).every(entry => entry.chunksSent >= chunks)))
      )
    }
    if (isReached()) return
    await new Promise((resolve, reject) => {
      const watcher = () => {
        if (!isReached()) return
        this.#watchers.delete(watcher)
        resolve()
      }
      this.#watchers.add(watcher)
      signal.addEventListener('abort', () => {
        this.#watchers.delete(watcher)
        reject(signal.reason)
      })
    })
  }

  #changed() {
    for (const watcher of this.#watchers) watcher()
  }

  #append(line) {
    writeSync(this.#fd, `${JSON.stringify(line)}\n`)
  }

  /** Resolves when every line so far is on disk; those that wait together share one sync. */
  #durable() {
    this.#nextSync ??= this.#syncing.then(() => {
      this.#nextSync = null
      this.#syncing = promisify(fsync)(this.#fd)
      return this.#syncing
    })
    return this.#nextSync
  }
}
