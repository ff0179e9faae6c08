/** The processes and folders of one bench: started here, measured through /proc (so Linux only), and all ended here. */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const READY_MS = 20_000
const STOP_MS = 8_000

/** CPU time that all threads of a process have used, in milliseconds; unlike the ticks of `stat` exact to the µs. */
export function cpuMs(pid) {
  const tasks = `/proc/${pid}/task`
  const nanoseconds = task => Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ', 1)[0])
  return readdirSync(tasks).reduce((sum, task) => sum + nanoseconds(task), 0) / 1e6
}

/** Resident memory of a process in bytes. */
export const rss = pid => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

export class Stage {
  #children = new Set()
  #folders = []
  #closed = false

  /** A new temporary folder, removed by `close`. */
  async folder() {
    this.#refuseWhenClosed()
    const path = await mkdtemp(join(tmpdir(), 'gateway-bench-'))
    this.#folders.push(path)
    return path
  }

  /**
   * Starts a Node script and resolves with its pid and what it says when it is ready: the message of a helper
   * (`via: 'ipc'`), or one line of JSON on descriptor 3 (`via: 'fd'`).
   */
  async start(args, { env = {}, via = 'ipc' } = {}) {
    this.#refuseWhenClosed()
    const stdio = ['ignore', 'ignore', 'pipe', via === 'ipc' ? 'ipc' : 'pipe']
    const child = spawn(process.execPath, args, { stdio, env: { PATH: process.env.PATH ?? '', ...env } })
    this.#children.add(child)
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      stderr = (stderr + text).slice(-4000)
    })
    const ready = await new Promise((resolve, reject) => {
      const fail = what => reject(new Error(`${args.join(' ')} ${what}\n${stderr}`))
      const timer = setTimeout(() => fail(`was not ready after ${READY_MS} ms`), READY_MS)
      child.once('error', reject)
      child.once('close', (code, signal) => fail(`ended with ${code ?? signal} before it was ready`))
      const done = value => {
        clearTimeout(timer)
        child.removeAllListeners('close')
        resolve(value)
      }
      if (via === 'ipc') child.once('message', done)
      else createInterface({ input: child.stdio[3] }).once('line', line => done(JSON.parse(line)))
    })
    return { ...ready, pid: child.pid, stop: () => this.#stop(child) }
  }

  async close() {
    this.#closed = true
    await Promise.all([...this.#children].map(child => this.#stop(child)))
    await Promise.all(this.#folders.map(path => rm(path, { recursive: true, force: true })))
  }

  /** What begins after the end would be left behind. */
  #refuseWhenClosed() {
    if (this.#closed) throw new Error('the bench is ending')
  }

  /** Asks a process to end, and ends it when it does not. */
  async #stop(child) {
    this.#children.delete(child)
    if (child.exitCode !== null || child.signalCode !== null) return
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    child.kill('SIGTERM')
    await new Promise(resolve => child.once('exit', resolve))
    clearTimeout(timer)
  }
}
