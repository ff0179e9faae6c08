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
  /** Keeps answers to creates until this holds. */
  holdCreates: Promise<void> | undefined
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
      await studio.holdCreates
      if (studio.create === 'cut') req.socket.destroy()
      else if (studio.create === 'ok') json(200, { id: `up_${++made}`, status: 'queued', progress: 0 })
      else json(studio.create, { error: { message: 'no', code: 'nope' } })
    } else if (method === 'DELETE') {
      studio.deleted.push(id)
      json(200, { id, deleted: true })
    } else if (isContent) content(req, res, studio.film)
    else {
      const count = (studio.polls.get(id) ?? 0) + 1
      studio.polls.set(id, count)
      open.set(id, (open.get(id) ?? 0) + 1)
      studio.overlap = Math.max(studio.overlap, open.get(id)!)
      setImmediate(() => {
        open.set(id, open.get(id)! - 1)
        const step = studio.deleted.includes(id)
          ? 'canceled'
          : studio.script[Math.min(count, studio.script.length) - 1]!
        if (typeof step === 'number') json(step, { error: { message: 'later' } })
        else json(200, { id, status: step, progress: count * 20, error: studio.error })
      })
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
    ...{ film: FILM, holdCreates: undefined },
    ...{ creates: [], polls: new Map(), overlap: 0, deleted: [], headers: [] },
    async until(wanted) {
      while (!wanted()) await new Promise<void>(resolve => wake.push(resolve))
    },
  }
  return studio
}

function content(req: IncomingMessage, res: ServerResponse, film: Buffer): void {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(req.headers.range ?? '') ?? []
  const headers = { 'content-type': 'video/mp4', etag: '"film"' }
  if (first === undefined) {
    res.writeHead(200, { ...headers, 'content-length': film.length })
    res.end(film)
    return
  }
  const end = last ? Math.min(Number(last), film.length - 1) : film.length - 1
  const range = `bytes ${first}-${end}/${film.length}`
  res.writeHead(206, { ...headers, 'content-length': end - Number(first) + 1, 'content-range': range })
  res.end(film.subarray(Number(first), end + 1))
}
