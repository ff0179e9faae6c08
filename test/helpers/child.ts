/** Child processes of tests: collects their output and awaits their end. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

/** The used part of a tap test. */
export interface Scope {
  teardown(end: () => unknown): void
  passing(): boolean
}

/** How a process ended: its exit code, or the signal that killed it. */
export type Exit = number | NodeJS.Signals

export class Child {
  readonly pid: number
  readonly exited: Promise<Exit>
  readonly #process: ChildProcess
  readonly #output = { stdout: '', stderr: '' }

  /** Runs a Node script with exactly the environment given, so that no setting of the test runner leaks into it. */
  constructor(
    script: string,
    args: string[],
    options: { env?: Record<string, string>; cwd?: string; stdio: StdioOptions },
  ) {
    const env = { PATH: process.env.PATH ?? '', ...options.env }
    this.#process = spawn(process.execPath, [script, ...args], { ...options, env })
    this.exited = new Promise((resolve, reject) => {
      this.#process.once('error', reject)
      this.#process.once('close', (code, signal) => resolve(code ?? signal ?? 'SIGKILL'))
    })
    this.pid = this.#process.pid ?? 0
    for (const name of ['stdout', 'stderr'] as const) {
      this.#process[name]?.setEncoding('utf8').on('data', (text: string) => {
        this.#output[name] += text
      })
    }
  }

  get stdout(): string {
    return this.#output.stdout
  }

  get stderr(): string {
    return this.#output.stderr
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name)
  }

  /** Closes the standard input of the process, when that is a pipe. */
  closeInput(): void {
    this.#process.stdin?.end()
  }

  async kill(name: NodeJS.Signals): Promise<Exit> {
    if (this.running) this.signal(name)
    return this.exited
  }

  /** The first line on a file descriptor; rejects with the end of stderr when the process ends or takes too long. */
  async firstLine(fd: number, timeoutMs: number): Promise<string> {
    const lines = createInterface({ input: this.#process.stdio[fd] as Readable })
    let timer: NodeJS.Timeout | undefined
    try {
      return await Promise.race([
        new Promise<string>(resolve => lines.once('line', resolve)),
        this.exited.then(exit => this.#refuse(`ended with ${exit} before it was ready`)),
        new Promise<never>((_, reject) => {
          timer = setTimeout(() => reject(this.#failure(`was not ready after ${timeoutMs} ms`)), timeoutMs)
        }),
      ])
    } finally {
      clearTimeout(timer)
    }
  }

  #refuse(what: string): never {
    throw this.#failure(what)
  }

  #failure(what: string): Error {
    return new Error(`${this.#process.spawnargs[1]} ${what}\n${this.stderr.slice(-4000)}`)
  }
}
