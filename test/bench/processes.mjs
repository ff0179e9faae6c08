/** The processes and folders of one bench: started here, measured through /proc (so Linux only), and all ended here. */
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const READY_MS = 20_000
const STOP_MS = 8_000

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** CPU time that a process has used, user and system, in milliseconds; its resolution is a clock tick, often 10 ms. */
export function cpuMs(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the command in parentheses and may hold spaces; utime and stime are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond
}

/** Resident memory of a process in bytes. */
export const rss = pid =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

export class Stage {
  #children = new Set()
  #folders = []

  /** A new temporary folder, removed by `close`. */
  async folder() {
    const path = await mkdtemp(join(tmpdir(), 'gateway-bench-'))
    this.#folders.push(path)
    return path
  }

  /**
   * Starts a Node script and resolves with its pid and what it says when it is ready: the message of a helper
   * (`via: 'ipc'`), or one line of JSON on descriptor 3 (`via: 'fd'`).
   */
  async start(args, { env = {}, via = 'ipc' } = {}) {
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
    await Promise.all([...this.#children].map(child => this.#stop(child)))
    await Promise.all(this.#folders.map(path => rm(path, { recursive: true, force: true })))
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
