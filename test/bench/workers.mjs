/**
 * `node test/bench/workers.mjs`: what `server.workers` brings. One gateway with one worker and one with several, loaded
 * in turn over plain sockets by this process, which plays the provider too: it must cost little, because it shares the
 * cores with what it measures.
 */
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, connect as open } from 'node:net'
import { parseArgs } from 'node:util'
import { parse, stringify } from 'yaml'
import { configure, startGateway } from './gateway.mjs'
import { cpuMs, rss, Stage } from './processes.mjs'
import { checkWhole, request, whole } from './sample.mjs'
import { median } from './stats.mjs'

const usage = `usage: node test/bench/workers.mjs [--workers N (2)] [--runs N (5)] [--seconds S (2)] [--json]`

const CONNECTIONS = 256
/** Answers that each worker gives before it is measured: its code is compiled by what it serves itself. */
const WARM_UP = 15_000
const HEAD_END = '\r\n\r\n'

/**
 * @typedef {object} Row
 * @property {number} workers
 * @property {number} perSecond answers
 * @property {number} workersUs CPU time of all workers for each request, in microseconds; of one process, all of it
 * @property {number} primaryUs the same of the process that leads them
 * @property {number} loadUs the same of this process: load generator and provider
 * @property {number} runnable share of the time that the idlest worker had a core or waited for one; near 1, it is not
 * the load, nor what the workers wait for in each other, that bounds the figure
 * @property {number} idleBytes resident memory of all processes before the first request
 */

/**
 * Medians of alternating runs. `measured` is what the machine gave while this process took its part of it; `alone` is
 * what the gateway's own CPU times allow when nothing else runs on as many cores as there are workers.
 * @param {Stage} stage
 * @param {{ workers: number, runs: number, seconds: number }} options
 * @returns {Promise<{ rows: Row[], measured: number, alone: number }>}
 */
export async function measureWorkers(stage, { workers, runs, seconds }) {
  const provider = await startProvider()
  const subjects = []
  for (const count of [1, workers]) subjects.push(await Subject.start(stage, provider.url, count))
  try {
    for (const subject of subjects) await subject.warmUp()
    for (let run = 0; run < runs; run++) for (const subject of subjects) subject.note(await subject.run(seconds))
  } finally {
    for (const subject of subjects) await subject.stop()
    provider.close()
  }
  const rows = subjects.map(subject => subject.row())
  const [one, several] = rows
  return {
    rows,
    measured: several.perSecond / one.perSecond,
    alone: (workers * (one.workersUs + one.primaryUs)) / (several.workersUs + several.primaryUs),
  }
}

/** A gateway, and what was measured of it. */
class Subject {
  #runs = []

  static async start(stage, upstream, count) {
    const subject = new Subject()
    const config = await configure(stage, upstream)
    const settings = parse(readFileSync(config, 'utf8'))
    writeFileSync(config, stringify({ ...settings, server: { ...settings.server, workers: count } }))
    const gateway = await startGateway(stage, config)
    const children = childrenOf(gateway.pid)
    subject.count = count
    subject.stop = gateway.stop
    subject.workers = children.length > 0 ? children : [gateway.pid]
    subject.primary = children.length > 0 ? gateway.pid : undefined
    subject.idleBytes = [gateway.pid, ...children].reduce((sum, pid) => sum + rss(pid), 0)
    const body = request({ model: 'bench' })
    const { host, hostname, port } = new URL(gateway.url)
    const head = [
      'POST /v1/chat/completions HTTP/1.1',
      `Host: ${host}`,
      `Authorization: ${gateway.headers.authorization}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
    ]
    subject.address = { host: hostname, port: Number(port) }
    subject.message = Buffer.from(`${head.join('\r\n')}${HEAD_END}${body}`)
    return subject
  }

  async warmUp() {
    for (let left = WARM_UP * this.count; left > 0; ) left -= (await this.run(1)).perSecond
  }

  /** Keeps all connections busy for a while. */
  async run(seconds) {
    const load = new Load(this.address, this.message)
    await load.open()
    const before = this.#clocks()
    const wanted = this.workers.map(runnableMs)
    const start = performance.now()
    const answers = await load.run(seconds * 1000)
    const ms = performance.now() - start
    const [own, primary, ...workers] = this.#clocks().map((clock, at) => clock - before[at])
    const runnable = this.workers.map((pid, at) => runnableMs(pid) - wanted[at])
    load.close()
    const perAnswer = clock => (clock * 1000) / answers
    return {
      perSecond: (answers * 1000) / ms,
      loadUs: perAnswer(own),
      primaryUs: perAnswer(primary),
      workersUs: perAnswer(workers.reduce((sum, clock) => sum + clock, 0)),
      runnable: Math.min(...runnable) / ms,
    }
  }

  note(run) {
    this.#runs.push(run)
  }

  /** @returns {Row} */
  row() {
    const of = name => median(this.#runs.map(run => run[name]))
    const names = ['perSecond', 'workersUs', 'primaryUs', 'loadUs', 'runnable']
    return {
      workers: this.count,
      idleBytes: this.idleBytes,
      ...Object.fromEntries(names.map(name => [name, of(name)])),
    }
  }

  #clocks() {
    const { user, system } = process.cpuUsage()
    return [(user + system) / 1000, this.primary ? cpuMs(this.primary) : 0, ...this.workers.map(cpuMs)]
  }
}

/** Sends one message again and again over each connection, as soon as it is answered. */
class Load {
  #address
  #message
  #sockets = []
  #answers = 0
  #running = false
  #fail = () => {}

  constructor(address, message) {
    this.#address = address
    this.#message = message
  }

  async open() {
    this.#sockets = Array.from({ length: CONNECTIONS }, () => open(this.#address).setNoDelay())
    await Promise.all(this.#sockets.map(socket => once(socket, 'connect')))
    for (const socket of this.#sockets) this.#listen(socket)
  }

  /** Resolves with the number of answers. */
  async run(ms) {
    this.#running = true
    const failed = new Promise((_, reject) => {
      this.#fail = reject
    })
    for (const socket of this.#sockets) socket.write(this.#message)
    await Promise.race([failed, new Promise(resolve => setTimeout(resolve, ms))])
    this.#running = false
    return this.#answers
  }

  close() {
    for (const socket of this.#sockets) socket.destroy()
  }

  #listen(socket) {
    let checked = false
    socket.on('error', this.#fail)
    onMessages(socket, (head, body) => {
      if (!head.startsWith('HTTP/1.1 200')) return this.#fail(new Error(`answered ${head}${HEAD_END}${body}`))
      // One answer of each connection in full; to read all of them would cost as much as to make them.
      if (!checked) checkWhole(body.toString())
      checked = true
      if (!this.#running) return
      this.#answers++
      socket.write(this.#message)
    })
  }
}

/** The simulated provider: answers every message at once. */
async function startProvider() {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(whole)}`
  const answer = Buffer.from(`${head}${HEAD_END}${whole}`)
  const server = createServer({ noDelay: true }, socket => {
    socket.on('error', () => {})
    onMessages(socket, () => socket.write(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }
}

/** Cuts what arrives into messages of a head with a content length, and a body. */
function onMessages(socket, onMessage) {
  let rest
  socket.on('data', chunk => {
    let data = rest ? Buffer.concat([rest, chunk]) : chunk
    for (;;) {
      const end = data.indexOf(HEAD_END)
      if (end < 0) break
      const head = data.latin1Slice(0, end)
      const at = head.search(/\r\ncontent-length: /i)
      const length = at < 0 ? 0 : Number.parseInt(head.slice(at + 18), 10)
      const start = end + HEAD_END.length
      if (data.length < start + length) break
      onMessage(head, data.subarray(start, start + length))
      data = data.subarray(start + length)
    }
    rest = data.length > 0 ? data : undefined
  })
}

/** Milliseconds that the event loop of a process has run, or could have run if a core had been free. */
function runnableMs(pid) {
  const [ran, waited] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ').map(Number)
  return (ran + waited) / 1e6
}

/** Pids; Linux only, as all of the bench. */
function childrenOf(parent) {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return pids.map(Number).filter(pid => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
    } catch {
      // It has ended meanwhile.
      return false
    }
  })
}

export function renderWorkers({ rows, measured, alone }) {
  const us = value => `${value.toFixed(0)} µs`
  const lines = rows.map(row => {
    const cells = [row.workers, row.perSecond.toFixed(0), us(row.workersUs), us(row.primaryUs), us(row.loadUs)]
    return `| ${[...cells, `${(row.runnable * 100).toFixed(0)} %`, `${(row.idleBytes / 2 ** 20).toFixed(0)} MB`].join(' | ')} |`
  })
  return [
    '| workers | requests/s | CPU of workers | of the primary | of the load | idlest worker runnable | memory idle |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...lines,
    '',
    `${measured.toFixed(2)} × as measured; ${alone.toFixed(2)} × by CPU time, with as many cores as workers to themselves`,
  ].join('\n')
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({
    options: {
      workers: { type: 'string', default: '2' },
      runs: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '2' },
      json: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  })
  const stage = new Stage()
  try {
    if (values.help) console.log(usage)
    else {
      const numbers = { workers: Number(values.workers), runs: Number(values.runs), seconds: Number(values.seconds) }
      const result = await measureWorkers(stage, numbers)
      console.log(values.json ? JSON.stringify(result, null, 2) : renderWorkers(result))
    }
  } catch (error) {
    console.error(`bench: ${error.message}\n${stage.complaints()}`)
    process.exitCode = 1
  } finally {
    await stage.close()
  }
}
