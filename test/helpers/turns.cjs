/**
 * Loaded before a gateway (`--require`): a connection to the socket named by TURNS receives the maximum CPU time, in
 * milliseconds, of one turn of the event loop since the last connection. Wall time would depend on the load of the
 * machine. The kernel counts in ticks of up to 4 ms.
 */
const { closeSync, openSync, readSync } = require('node:fs')
const { createServer } = require('node:net')
const { isMainThread } = require('node:worker_threads')

const buffer = Buffer.alloc(64)

/** Of the main thread; excludes time used by other processes. */
function usedMs(file) {
  const length = readSync(file, buffer, 0, buffer.length, 0)
  return Number(buffer.toString('latin1', 0, buffer.indexOf(0x20)).slice(0, length)) / 1e6
}

if (isMainThread && process.env.TURNS) {
  const file = openSync('/proc/self/schedstat', 'r')
  let before = usedMs(file)
  let most = 0
  const note = () => {
    const now = usedMs(file)
    if (now - before > most) most = now - before
    before = now
  }
  // A timer fires once per turn, however long that was.
  const timer = setInterval(note, 1).unref()
  const server = createServer(socket => {
    note()
    socket.on('error', () => socket.destroy())
    socket.end(String(most))
    most = 0
  })
  server.listen(process.env.TURNS).unref()
  process.on('exit', () => {
    clearInterval(timer)
    closeSync(file)
  })
}
