/**
 * Clients that take their time, as a process of their own: `node connections.mjs MODE PORT COUNT [KEY]`. It opens COUNT
 * connections and, except for `idle`, opens another one wherever one is closed, until its standard input closes.
 * It prints `{"open":N}` when all are there, and `{"open":N,"closed":N}` at the end.
 *
 * idle: each has had an answer, and asks nothing more. headers, body: each sends a little of its request now and then.
 * read: each asks for a stream of the model `endless`, and takes a little of it now and then.
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [mode, port, count, key = ''] = process.argv.slice(2)
const DRIP_MS = 3000
/** Connections that are opened in one go, and how long it waits before the next: 400 a second. */
const BATCH = 20
const BATCH_MS = 50

const head = line => `${line} HTTP/1.1\r\nHost: g\r\n`
const as = `Authorization: Bearer ${key}\r\n`
const json = 'Content-Type: application/json\r\n'
const endless = '{"model":"endless","stream":true,"messages":[{"role":"user","content":"Hi"}]}'
const modes = {
  idle: { first: `${head('GET /')}\r\n` },
  headers: { first: head('GET /v1/models'), drip: 'X-Slow: yes\r\n' },
  body: { first: `${head('POST /v1/chat/completions')}${as}${json}Content-Length: 8192\r\n\r\n`, drip: ' ' },
  read: {
    first: `${head('POST /v1/chat/completions')}${as}${json}Content-Length: ${endless.length}\r\n\r\n${endless}`,
    read: 16,
  },
}
const { first, drip, read } = modes[mode]

const open = new Set()
let closed = 0
let wanted = 0

function begin() {
  const socket = connect(Number(port), '127.0.0.1')
  open.add(socket)
  if (read) socket.on('readable', () => undefined)
  else socket.resume()
  socket.on('error', () => undefined)
  socket.once('connect', () => socket.write(first))
  socket.once('close', () => {
    open.delete(socket)
    closed++
  })
}

async function fill() {
  wanted = Number(count)
  while (wanted > 0) {
    for (let n = Math.min(BATCH, wanted - open.size); n > 0; n--) begin()
    await sleep(BATCH_MS)
    if (mode === 'idle' && open.size + closed >= wanted) return
  }
}

setInterval(() => {
  for (const socket of open) {
    if (drip && socket.writable) socket.write(drip)
    if (read) socket.read(read)
  }
}, DRIP_MS).unref()

process.stdin.resume().once('close', () => {
  wanted = 0
  console.log(JSON.stringify({ open: open.size, closed }))
  process.exit()
})
const filling = fill()
while (open.size + closed < Number(count)) await sleep(10)
if (mode === 'idle') {
  await filling
  // The last one has had its answer.
  await sleep(500)
}
console.log(JSON.stringify({ open: open.size }))
