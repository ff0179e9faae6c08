/** Starts the simulated provider of `upstream/server.mjs`, scripts it and reads its record. */
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Child, type Exit, type Scope } from './child.ts'

/** Bytes as they are, or with a wait before them, or many times. */
export type Piece = string | { text?: string; base64?: string; pauseMs?: number; times?: number }

/** A fault; those marked * need or take `afterChunks`. A whole body counts as cut in its middle after any chunk. */
export type Fault =
  /** The connection closes before any byte. */
  | 'refuse'
  /** * RST before any byte, or after n chunks. */
  | 'reset'
  /** * FIN in the middle of the body, after n chunks. */
  | 'fin'
  /** * Says nothing at all, or nothing more after n chunks. */
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
  /** Ends in good HTTP order, but without finish reason, usage and terminator; a whole body lacks its second half. */
  | 'truncate'
  /** The last chunk again and again, every `chunkDelayMs` (50). */
  | 'trickle'
  /** Status 103 again and again, every `chunkDelayMs` (20). */
  | 'flood103'
  /** The right bytes, labelled `application/octet-stream`. */
  | 'wrong-type'
  /** Answers `status` (413) before it has read the request's body, and closes. */
  | 'early'

/** What one request gets. Without a script, `echo: <last user text>` in four chunks. */
export interface Step {
  status?: number
  /** Added to the answer's; null leaves one out. */
  headers?: Record<string, string | null>
  /** The whole answer: JSON, or text as it is. For a fault that tells an error, that error. */
  body?: unknown
  /** Wait before the head. */
  delayMs?: number
  /** The answer's text, cut into four chunks. */
  text?: string
  /** The answer's text as the chunks to send. */
  chunks?: string[]
  /** A refusal in words, on wires that tell it apart from text. */
  refusal?: string
  reasoning?: string | string[]
  /** Tool calls, of custom tools where they have an `input`; `offered` calls the first offered tool with `{}` until its result is there. */
  toolCalls?: { name: string; args?: unknown; input?: string }[] | 'offered'
  /** What is claimed, over the defaults (a quarter of the characters, one token per chunk); null claims nothing. */
  usage?: Partial<UpstreamUsage> | null
  /** In the words of the OpenAI wire; null for none. */
  finish?: string | null
  /** Wait before each chunk. */
  chunkDelayMs?: number
  /** The body's bytes, in place of an answer. */
  raw?: Piece[]
  /** The connection's bytes, in place of an HTTP answer; then the connection closes. */
  socket?: Piece[]
  fault?: Fault
  afterChunks?: number
  /** Wait for `release` after so many chunks; 0 is before the head. */
  hold?: number
  /** Neither length nor chunks: the body ends where the connection does. */
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

/** One request as the upstream saw it. */
export interface Entry {
  id: number
  /** Unix milliseconds. */
  at: number
  prefix: string
  path: string
  /** Name of the wire module that it was spoken on. */
  wire: string | null
  model: string | null
  /** By lower-case name; credentials show as `fingerprint` says, after their scheme. */
  headers: Record<string, string>
  /** Parsed when it is JSON; null when it was not read. */
  body: Record<string, unknown> | string | null
  /** Of the body's bytes; null when it was not read. */
  sha256: string | null
  /** Headers that should not have come. */
  violations: string[]
  /** What was wrong with the request, when it was refused as the real provider would. */
  refused: { status: number; message: string } | null
  /** `aborted`: the caller left. `cut`: a fault ended it. Null while it runs. */
  outcome: 'completed' | 'aborted' | 'cut' | null
  aborted: boolean
  abortedAt: number | null
  endedAt: number | null
  chunksSent: number
  /** What a provider would bill for the part that was sent. */
  tokens: { prompt: number; completion: number }
  /** What the answer claimed, when it got that far. */
  usage: UpstreamUsage | null
}

/** Waits until so many requests came and ended, and the newest and all that still run have sent so many chunks. */
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
  /** What the provider's next requests get; the last step stays. */
  script(prefix: string, steps: Step[]): Promise<void>
  record(prefix?: string, until?: Until): Promise<Entry[]>
  /** Lets held answers go on. */
  release(prefix?: string): Promise<void>
  /** Forgets scripts and record; the record's file keeps all. */
  reset(): Promise<void>
  /** Closes its standard input, or sends it a signal. */
  stop(signal?: NodeJS.Signals): Promise<Exit>
}

const server = fileURLToPath(new URL('./upstream/server.mjs', import.meta.url))
const normal = (prefix: string) => (prefix.startsWith('/') ? prefix : `/${prefix}`)

/** Starts one upstream process for a test. With `key`, any other credential gets 401. */
export async function startUpstream(t: Scope, options: { key?: string | string[] } = {}): Promise<Upstream> {
  const dir = await mkdtemp(join(tmpdir(), 'upstream-'))
  const recordFile = join(dir, 'record.jsonl')
  const keys = [options.key ?? []].flat().flatMap(key => ['--key', key])
  const child = new Child(server, ['--record', recordFile, ...keys], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(async () => {
    await child.kill('SIGTERM')
    await rm(dir, { recursive: true })
  })
  const { port } = JSON.parse(await child.firstLine(1, 60_000)) as { port: number }
  const origin = `http://127.0.0.1:${port}`

  async function control(method: string, path: string, query: Record<string, unknown> = {}, body?: unknown) {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) }
    const response = await fetch(`${origin}${path}?${search}`, init)
    const answer: unknown = await response.json()
    if (!response.ok) throw new Error(`upstream: ${(answer as { error: string }).error}`)
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

/** What the record shows of a secret: enough to tell which of two keys was used. */
export const fingerprint = (secret: string): string =>
  `sha256:${createHash('sha256').update(secret).digest('hex').slice(0, 12)}`

/** The entries of a record's file: each line of a beginning, completed by the line of its end. */
export async function readRecord(file: string): Promise<Entry[]> {
  const entries = new Map<number, Entry>()
  for (const line of (await readFile(file, 'utf8')).split('\n')) {
    if (line === '') continue
    const { event: _, ...fields } = JSON.parse(line) as Entry & { event: string }
    entries.set(fields.id, Object.assign(entries.get(fields.id) ?? fields, fields))
  }
  return [...entries.values()]
}

/** A loopback port that nobody listens on, for connections that shall be refused. */
export async function closedPort(): Promise<number> {
  const listener = createServer()
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as { port: number }
  await new Promise(resolve => listener.close(resolve))
  return port
}
