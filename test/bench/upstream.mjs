/**
 * The simulated provider: `node upstream.mjs [PORT]`. It answers at once, so that what is measured is the proxy's, and
 * does not parse what it is sent, so that a large prompt keeps nobody waiting here. Sends `{ url }` to its parent, whose
 * message `step` has every stepped stream go on.
 */
import { createServer } from 'node:http'
import { BURST, frames, PACED, pieces, SLOW, STEPPED, whole } from './sample.mjs'
import { answer as vectors } from './sample-embeddings.mjs'
import { audioPiece, images, speech, transcriptions } from './sample-media.mjs'
import { frames as messageFrames } from './sample-messages.mjs'

/** All slow streams have one more chunk in this time, a part of them at every tick. */
const SLOW_MS = 2_000
const TICKS = 100
/** The frame that a slow stream repeats: its first text. */
const TEXT = 1

const server = createServer((req, res) => {
  const body = []
  req.on('data', chunk => body.push(chunk))
  req.on('end', () => {
    const path = /\/(chat\/completions|messages|embeddings|generations|speech|transcriptions)$/.exec(req.url)?.[1]
    if (req.method !== 'POST' || !path) return res.writeHead(404).end()
    if (path === 'embeddings') return send(res, vectors)
    if (path === 'generations') return send(res, images.answer)
    if (path === 'transcriptions') return send(res, transcriptions.answer)
    if (path === 'speech') return say(res)
    const request = Buffer.concat(body)
    if (!request.includes('"stream":true')) return send(res, whole)
    const asks = prompt => request.includes(`"${prompt}"`)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const all = path === 'messages' ? messageFrames : frames
    if (asks(BURST)) res.end(all.join(''))
    else if (asks(STEPPED)) step(res, inSteps(all))
    else if (asks(SLOW)) trickle(res)
    else play(res, all, asks(PACED) ? setTimeout : setImmediate)
  })
})

const send = (res, body) =>
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)

/** A piece of audio per turn of the event loop. */
function say(res) {
  res.writeHead(200, { 'content-type': 'audio/mpeg' })
  play(
    res,
    Array.from({ length: speech.pieces }, () => audioPiece),
    setImmediate,
  )
}

/** One event per turn of the event loop or millisecond, depending on `after`: `setImmediate` or `setTimeout`. */
function play(res, all, after) {
  const step = at => {
    if (res.destroyed) return
    res.write(all[at])
    if (at + 1 === all.length) res.end()
    else after(() => step(at + 1), 1)
  }
  step(0)
}

/** What comes before the first text and behind the last one comes with it: each step is one that a client can see. */
function inSteps(all) {
  const texts = all
    .map((frame, at) => (pieces.some(piece => frame.includes(`"${piece}"`)) ? at : -1))
    .filter(at => at >= 0)
  return texts.map((at, index) => all.slice(index === 0 ? 0 : at, texts[index + 1]).join(''))
}

const stepped = new Set()

function step(res, steps) {
  const [first, ...rest] = steps
  res.write(first)
  if (rest.length === 0) res.end()
  else stepped.add(() => step(res, rest))
}

process.on('message', () => {
  const waiting = [...stepped]
  stepped.clear()
  for (const go of waiting) go()
})

const slow = Array.from({ length: TICKS }, () => new Set())
let opened = 0
let tick = 0

function trickle(res) {
  const group = slow[opened++ % TICKS]
  res.write(frames.slice(0, TEXT + 1).join(''))
  group.add(res)
  res.once('close', () => group.delete(res))
}

setInterval(() => {
  for (const res of slow[tick++ % TICKS]) res.write(frames[TEXT])
}, SLOW_MS / TICKS)

// An idle connection that its provider closes first would fail a request now and then, and spoil the figures.
server.keepAliveTimeout = 0
server.listen({ host: '127.0.0.1', port: Number(process.argv[2] ?? 0), backlog: 4096 }, () => {
  process.send({ url: `http://127.0.0.1:${server.address().port}` })
})
