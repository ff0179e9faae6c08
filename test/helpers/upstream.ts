/** Starts the simulated provider of `upstream/server.mjs`, scripts it and reads its record. */
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Child, type Exit, type Scope } from './child.ts'

/** Bytes, optionally after a delay, or repeated. */
export type Piece = string | { text?: string; base64?: string; pauseMs?: number; times?: number }

/**
 * A fault; those marked * require or accept `afterChunks`. A whole body counts as cut in its middle after any chunk.
 */
export type Fault =
  /** The connection closes before any byte. */
  | 'refuse'
  /** * RST before any byte, or after n chunks. */
  | 'reset'
  /** * FIN in the middle of the body, after n chunks. */
  | 'fin'
  /** * Sends nothing, or nothing more after n chunks. */
  | 'stall'
  /** A JSON error body (`body`, else the wire's) under status 200. */
  | 'error-in-200'
  /** A stream that starts with an error event and ends. */
  | 'error-first-event'
  /** * An error event (`body`, else the wire's) after n chunks. */
  | 'error-event'
  /** An HTML page of an intermediary. */
  | 'html'
  /** A 200 without a body. */
  | 'empty'
  /**
   * Ends correctly in HTTP terms, but without finish reason, usage and terminator; a whole body lacks its second half.
   */
  | 'truncate'
  /** Repeats the last chunk every `chunkDelayMs` (50). */
  | 'trickle'
  /** Repeats status 103 every `chunkDelayMs` (20). */
  | 'flood103'
  /** The correct bytes with the type `application/octet-stream`. */
  | 'wrong-type'
  /** Answers `status` (413) before reading the request's body, and closes. */
  | 'early'

/** The answer to one request. Without a script, `echo: <last user text>` in four chunks. */
export interface Step {
  status?: number
  /** Added to the answer's headers; null removes one. */
  headers?: Record<string, string | null>
  /** The whole answer: JSON, or text unchanged. For a fault with an error, that error. */
  body?: unknown
  /** Delay before the head. */
  delayMs?: number
  /** The answer's text, cut into four chunks. */
  text?: string
  /** The answer's text as the chunks to send. */
  chunks?: string[]
  /** A refusal's text, on wires with a field for it. */
  refusal?: string
  reasoning?: string | string[]
  /**
   * Tool calls, of custom tools when they have an `input`; `offered` calls the first offered tool with `{}` until its
   * result arrives.
   */
  toolCalls?: { name: string; args?: unknown; input?: string }[] | 'offered'
  /** Reported usage, merged into the defaults (a quarter of the characters, one token per chunk); null reports none. */
  usage?: Partial<UpstreamUsage> | null
  /** OpenAI's finish reason; null for none. */
  finish?: string | null
  /** Delay before each chunk. */
  chunkDelayMs?: number
  /** The body's bytes, instead of an answer. */
  raw?: Piece[]
  /** The connection's bytes, instead of an HTTP answer; then the connection closes. */
  socket?: Piece[]
  fault?: Fault
  afterChunks?: number
  /** Waits for `release` after this many chunks; 0 is before the head. */
  hold?: number
  /** Neither length nor chunks: the body ends with the connection. */
  unframed?: boolean
}

/** Tokens. `prompt` includes `cached` and `written`, `written` includes `written1h`, `completion` includes `reasoning`. */
export interface UpstreamUsage {
  prompt: number
  completion: number
  cached: number
  written: number
  written1h: number
  reasoning: number
}

/** One request as received by the upstream. */
export interface Entry {
  id: number
  /** Unix milliseconds. */
  at: number
  prefix: string
  path: string
  /** Name of its wire module. */
  wire: string | null
  model: string | null
  /** By lower-case name; credentials show as `fingerprint` says, after their scheme. */
  headers: Record<string, string>
  /** Parsed when it is JSON; null when it was not read. */
  body: Record<string, unknown> | string | null
  /** Of the body's bytes; null when not read. */
  sha256: string | null
  /** Headers that a gateway must not pass on. */
  violations: string[]
  /** The provider's error for an invalid request. */
  refused: { status: number; message: string } | null
  /** `aborted`: the caller left. `cut`: a fault ended it. Null while it runs. */
  outcome: 'completed' | 'aborted' | 'cut' | null
  aborted: boolean
  abortedAt: number | null
  endedAt: number | null
  chunksSent: number
  /** Tokens that a provider would bill for the sent part. */
  tokens: { prompt: number; completion: number }
  /** Reported usage, if the answer got that far. */
  usage: UpstreamUsage | null
}

/** Waits until this many requests arrived and ended, and the newest and all running ones have sent this many chunks. */
export interface Until {
  requests?: number
  ended?: number
  chunks?: number
  timeoutMs?: number
}

export interface Upstream {
  readonly port: number
  readonly pid: number
  /** JSON lines; those of a request are on disk before the last byte of its answer is sent. */
  readonly recordFile: string
  /** The base address of a provider: `url('a')` is `http://127.0.0.1:PORT/a/v1`. */
  url(prefix?: string): string
  /** Answers to the provider's next requests; the last step repeats. */
  script(prefix: string, steps: Step[]): Promise<void>
  record(prefix?: string, until?: Until): Promise<Entry[]>
  /** Releases held answers. */
  release(prefix?: string): Promise<void>
  /** Resets scripts and record; the record's file keeps everything. */
  reset(): Promise<void>
  /** Closes its standard input, or sends it a signal. */
  stop(signal?: NodeJS.Signals): Promise<Exit>
}

const server = fileURLToPath(new URL('./upstream/server.mjs', import.meta.url))
const normal = (prefix: string) => (prefix.startsWith('/') ? prefix : `/${prefix}`)

/** Starts one upstream process for a test. With `key`, other credentials get 401. */
export async function startUpstream(t: Scope, options: { key?: string | string[] } = {}): Promise<Upstream> {
  const dir = await mkdtemp(join(tmpdir(), 'upstream-'))
  const recordFile = join(dir, 'record.jsonl')
  const keys = [options.key ?? []].flat().flatMap(key => ['--key', key])
  const child = new Child(server, ['--record', recordFile, ...keys], { stdio: ['pipe', 'pipe', 'inherit'] })
  const agent = new Agent({ keepAlive: true })
  t.teardown(async () => {
    agent.destroy()
    await child.kill('SIGTERM')
    await rm(dir, { recursive: true })
  })
  const { port } = JSON.parse(await child.firstLine(1, 60_000)) as { port: number }
  const origin = `http://127.0.0.1:${port}`

  async function control(method: string, path: string, query: Record<string, unknown> = {}, body?: unknown) {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
    const { status, text } = await called(agent, method, `${origin}${path}?${search}`, JSON.stringify(body))
    const answer: unknown = JSON.parse(text)
    if (status !== 200) throw new Error(`upstream: ${(answer as { error: string }).error}`)
    return answer
  }
  const prefixOf = (prefix?: string) => (prefix === undefined ? {} : { prefix: normal(prefix) })

  return {
    port,
    pid: child.pid,
    recordFile,
    url: (prefix = '') => `${origin}${normal(prefix).replace(/\/$/, '')}/v1`,
    script: async (prefix, steps) => {
      await control('PUT', '/__script', {}, { [normal(prefix)]: steps })
    },
    record: async (prefix, until = {}) => {
      return (await control('GET', '/__record', { ...prefixOf(prefix), ...until })) as Entry[]
    },
    release: async prefix => {
      await control('POST', '/__release', prefixOf(prefix))
    },
    reset: async () => {
      await control('POST', '/__reset')
    },
    stop: async signal => {
      if (signal) return child.kill(signal)
      child.closeInput()
      return child.exited
    },
  }
}

/** Sends a request; `fetch` would take a sixth of the time of tests that script many answers. */
function called(agent: Agent, method: string, url: string, body?: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      response.once('end', () => resolve({ status: response.statusCode!, text }))
      response.once('error', reject)
    })
    // The server may close a connection that was kept just when it is used again.
    sent.once('error', error => (sent.reusedSocket ? resolve(called(agent, method, url, body)) : reject(error)))
    sent.end(body)
  })
}

/** A secret's form in the record: enough to tell two keys apart. */
export const fingerprint = (secret: string): string =>
  `sha256:${createHash('sha256').update(secret).digest('hex').slice(0, 12)}`

/** The entries of a record's file: each start line, completed by the line of its end. */
export async function readRecord(file: string): Promise<Entry[]> {
  const entries = new Map<number, Entry>()
  for (const line of (await readFile(file, 'utf8')).split('\n')) {
    if (line === '') continue
    const { event: _, ...fields } = JSON.parse(line) as Entry & { event: string }
    entries.set(fields.id, Object.assign(entries.get(fields.id) ?? fields, fields))
  }
  return [...entries.values()]
}

/**
 * A loopback port without a listener, for refused connections. One that was free a moment ago may be another test's by
 * now; this one is given to no process that takes any port.
 */
export const CLOSED_PORT = 2
