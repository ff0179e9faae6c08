/**
 * The simulated provider: `node upstream.mjs [PORT]`. It answers at once, so that what is measured is the proxy's.
 * Sends `{ url }` to its parent.
 */
import { createServer } from 'node:http'
import { frames, HOLD, whole } from './sample.mjs'

const HELD_FRAMES = 2

const server = createServer((req, res) => {
  const body = []
  req.on('data', chunk => body.push(chunk))
  req.on('end', () => {
    if (req.method !== 'POST' || !req.url.endsWith('/chat/completions')) return res.writeHead(404).end()
    const { stream, messages } = JSON.parse(Buffer.concat(body).toString())
    if (stream)
      return play(res.writeHead(200, { 'content-type': 'text/event-stream' }), messages.at(-1).content === HOLD)
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(whole) }).end(whole)
  })
})

/** One event per turn of the event loop, as tokens come; a held stream stays open after its first text. */
function play(res, held, at = 0) {
  if (res.destroyed) return
  res.write(frames[at])
  const next = at + 1
  if (held && next === HELD_FRAMES) return
  if (next === frames.length) res.end()
  else setImmediate(play, res, held, next)
}

// An idle connection that its provider closes first would fail a request now and then, and spoil the figures.
server.keepAliveTimeout = 0
server.listen({ host: '127.0.0.1', port: Number(process.argv[2] ?? 0), backlog: 2048 }, () => {
  process.send({ url: `http://127.0.0.1:${server.address().port}` })
})
