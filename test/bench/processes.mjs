/** The processes and folders of one bench: started here, measured through /proc (so Linux only), and all ended here. */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const leash = fileURLToPath(new URL('leash.cjs', import.meta.url))
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
  /** With the end of what each has said on standard error. */
  #children = new Map()
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
   * (`via: 'ipc'`), or one line of JSON on descriptor 3 (`via: 'fd'`). `tell` sends it a message, `ask`
   * also resolves with its next one.
   */
  async start(args, { env = {}, via = 'ipc' } = {}) {
    this.#refuseWhenClosed()
    const stdio = ['ignore', 'ignore', 'pipe', 'pipe', 'ipc']
    const child = spawn(process.execPath, ['--require', leash, ...args], {
      stdio,
      env: { PATH: process.env.PATH ?? '', ...env },
    })
    this.#children.set(child, '')
    child.stderr.setEncoding('utf8').on('data', text => {
      if (this.#children.has(child)) this.#children.set(child, (this.#children.get(child) + text).slice(-4000))
    })
    let timer
    const ready = await new Promise((resolve, reject) => {
      const fail = what => reject(new Error(`${args.join(' ')} ${what}`))
      timer = setTimeout(fail, READY_MS, `was not ready after ${READY_MS} ms`)
      child.once('error', reject)
      child.once('close', (code, signal) => fail(`ended with ${code ?? signal} before it was ready`))
      if (via === 'ipc') child.once('message', resolve)
      else createInterface({ input: child.stdio[3] }).once('line', line => resolve(JSON.parse(line)))
    }).finally(() => clearTimeout(timer))
    const ask = message =>
      new Promise((resolve, reject) => {
        child.once('message', resolve)
        child.send(message, error => error && reject(error))
      })
    return { ...ready, pid: child.pid, tell: message => child.send(message), ask, stop: () => this.#stop(child) }
  }

  /** Why a bench failed, as far as its processes know: which of them ended, and what they said. */
  complaints() {
    const told = [...this.#children].map(([{ spawnargs, exitCode, signalCode }, stderr]) => {
      const end = exitCode ?? signalCode
      return `${end === null ? '' : `${spawnargs.join(' ')} ended with ${end}\n`}${stderr}`
    })
    return told.join('').trim()
  }

  async close() {
    this.#closed = true
    await Promise.all([...this.#children.keys()].map(child => this.#stop(child)))
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
