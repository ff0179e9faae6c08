/** A video provider of the Sora shape that follows a script of states and counts its polls. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Scope {
  teardown(end: () => unknown): void
}

export const FILM = Buffer.concat([Buffer.from('\0\0\0\x18ftypisom', 'latin1'), Buffer.alloc(5000, 7)])

/** The answer to one poll: a status of the job, or an HTTP status. */
export type Step = string | number

export interface FilmStudio {
  readonly url: string
  readonly origin: string
  /** Answers to the polls of each job; the last one repeats. */
  script: readonly Step[]
  /** The answer to creates. */
  create: 'ok' | 'cut' | number
  readonly creates: string[]
  /** Polls by job. */
  readonly polls: Map<string, number>
  /** Maximum number of concurrent polls of one job. */
  overlap: number
  readonly deleted: string[]
  readonly headers: IncomingMessage['headers'][]
  error: object | null
  /** What its jobs make. */
  film: Buffer
  /** Answers to these wait for it; of a result its second half does. */
  readonly held: Partial<Record<'create' | 'poll' | 'content', Promise<void>>>
  /** How often a result was asked for. */
  contents: number
  /** How long a question takes at most, milliseconds. */
  lag: number
  /** Resolves once `wanted` holds. */
  until(wanted: () => boolean): Promise<void>
}

export async function filmStudio(t: Scope): Promise<FilmStudio> {
  let made = 0
  let wake: (() => void)[] = []
  const open = new Map<string, number>()
  const notify = () => {
    const waiting = wake
    wake = []
    for (const one of waiting) one()
  }
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const { url = '', method = '' } = req
    studio.headers.push(req.headers)
    const json = (status: number, body: object) => {
      res.writeHead(status, { 'content-type': 'application/json' })
      res.end(JSON.stringify(body))
    }
    const [, id = '', isContent] = /^\/v1\/videos\/([^/]+)(\/content)?$/.exec(url) ?? []
    if (method === 'POST') {
      studio.creates.push(Buffer.concat(chunks).toString('latin1'))
      notify()
      await studio.held.create
      if (studio.create === 'cut') req.socket.destroy()
      else if (studio.create === 'ok') json(200, { id: `up_${++made}`, status: 'queued', progress: 0 })
      else json(studio.create, { error: { message: 'no', code: 'nope' } })
    } else if (method === 'DELETE') {
      studio.deleted.push(id)
      json(200, { id, deleted: true })
    } else if (isContent) {
      studio.contents++
      notify()
      await content(req, res, studio)
    } else {
      const count = (studio.polls.get(id) ?? 0) + 1
      studio.polls.set(id, count)
      open.set(id, (open.get(id) ?? 0) + 1)
      studio.overlap = Math.max(studio.overlap, open.get(id)!)
      notify()
      await studio.held.poll
      setTimeout(() => {
        open.set(id, open.get(id)! - 1)
        const step = studio.deleted.includes(id)
          ? 'canceled'
          : studio.script[Math.min(count, studio.script.length) - 1]!
        if (typeof step === 'number') json(step, { error: { message: 'later' } })
        else json(200, { id, status: step, progress: count * 20, error: studio.error })
        notify()
      }, Math.random() * studio.lag)
    }
    notify()
  }
  const server = createServer((req, res) => void serve(req, res))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const studio: FilmStudio = {
    ...{ url: `${origin}/v1`, origin, script: ['queued', 'in_progress', 'completed'], create: 'ok', error: null },
    ...{ film: FILM, held: {}, contents: 0, lag: 0 },
    ...{ creates: [], polls: new Map(), overlap: 0, deleted: [], headers: [] },
    async until(wanted) {
      while (!wanted()) await new Promise<void>(resolve => wake.push(resolve))
    },
  }
  return studio
}

async function content(req: IncomingMessage, res: ServerResponse, { film, held }: FilmStudio): Promise<void> {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(rangeOf(req, film)) ?? []
  const headers = { 'content-type': 'video/mp4', etag: '"film"' }
  if (first === undefined) {
    res.writeHead(200, { ...headers, 'content-length': film.length })
    res.write(film.subarray(0, film.length / 2))
    await held.content
    res.end(film.subarray(film.length / 2))
    return
  }
  if (Number(first) >= film.length) {
    res.writeHead(416, { 'content-range': `bytes */${film.length}` })
    res.end()
    return
  }
  const end = last ? Math.min(Number(last), film.length - 1) : film.length - 1
  const range = `bytes ${first}-${end}/${film.length}`
  res.writeHead(206, { ...headers, 'content-length': end - Number(first) + 1, 'content-range': range })
  res.end(film.subarray(Number(first), end + 1))
}

/** The last bytes of a film are those from a place on; no bytes are those behind its end. */
const rangeOf = ({ headers: { range = '' } }: IncomingMessage, film: Buffer): string =>
  range.replace(/^bytes=-(\d+)$/, (_, last: string) => `bytes=${film.length - Number(last)}-`)
