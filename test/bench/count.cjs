/**
 * Loaded before a server: counts what it allocates and writes, between the messages `begin` and `end` of its parent.
 * Answers `begin` with `{}` and `end` with the counts.
 */
const { readFileSync } = require('node:fs')
const { Socket } = require('node:net')
const { GCProfiler, getHeapStatistics } = require('node:v8')

const counts = { statements: 0, transactions: 0, socketWrites: 0, socketBytes: 0 }

const count = (...chunks) => {
  counts.socketWrites++
  for (const { chunk, encoding } of chunks) counts.socketBytes += Buffer.byteLength(chunk, encoding)
}
const { _write: write, _writev: writev } = Socket.prototype
Socket.prototype._write = function (chunk, encoding, done) {
  count({ chunk, encoding })
  return write.call(this, chunk, encoding, done)
}
Socket.prototype._writev = function (chunks, done) {
  count(...chunks)
  return writev.call(this, chunks, done)
}

if (process.env.BENCH_SQLITE) {
  const Database = require(process.env.BENCH_SQLITE)
  const database = new Database(':memory:')
  const statements = Object.getPrototypeOf(database.prepare('SELECT 1'))
  for (const name of ['run', 'get', 'all']) {
    const execute = statements[name]
    statements[name] = function (...args) {
      counts.statements++
      if (this.source === 'COMMIT') counts.transactions++
      return execute.apply(this, args)
    }
  }
  database.close()
}

const heapUsed = () => getHeapStatistics().used_heap_size

/** What was written to sockets is known; the rest of all that the process has written went to files. */
function now() {
  const text = readFileSync('/proc/self/io', 'utf8')
  const of = name => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(text)[1])
  const { socketWrites, socketBytes } = counts
  return { ...counts, fileWrites: of('syscw') - socketWrites, fileBytes: of('wchar') - socketBytes }
}

let profiler
let before
let usedBefore

process.on('message', message => {
  if (message === 'begin') {
    profiler = new GCProfiler()
    profiler.start()
    usedBefore = heapUsed()
    before = now()
    process.send({})
  } else if (message === 'end') {
    const after = now()
    // What the heap has grown by from each collection of garbage to the next one.
    let allocatedBytes = heapUsed()
    let used = usedBefore
    for (const { beforeGC, afterGC } of profiler.stop().statistics) {
      allocatedBytes += beforeGC.heapStatistics.usedHeapSize - used
      used = afterGC.heapStatistics.usedHeapSize
    }
    const grown = Object.entries(after).map(([name, value]) => [name, value - before[name]])
    process.send({ allocatedBytes: allocatedBytes - used, ...Object.fromEntries(grown) })
  }
})
// The channel keeps no server from ending.
process.channel.unref()
