/** Debian's chromium without a screen, driven by the DevTools protocol. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import type { Scope } from './child.ts'

type Tree = Record<string, unknown>

export const chromium = ['chromium', 'chromium-headless-shell', 'chromium-browser'].find(
  name => spawnSync(name, ['--version']).status === 0,
)

interface Told {
  readonly id?: number
  readonly sessionId?: string
  readonly method?: string
  readonly params?: Tree
  readonly result?: Tree
  readonly error?: { readonly message: string }
}

const ARGUMENTS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run']
const START_MS = 60_000
const STEP_MS = 30_000

/** A browser with a new profile, closed with the test. */
export async function startBrowser(t: Scope): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), 'browser-'))
  const child = spawn(chromium!, [
    ...ARGUMENTS,
    '--remote-debugging-port=0',
    `--user-data-dir=${profile}`,
    'about:blank',
  ])
  const ended = new Promise(resolve => child.once('close', resolve))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  })
  const socket = new WebSocket(await addressOf(child))
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  return new Browser(socket)
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    const timer = setTimeout(() => reject(new Error(`chromium did not start: ${said}`)), START_MS)
    child.stderr!.setEncoding('utf8').on('data', piece => {
      said += piece
      const [, url] = /DevTools listening on (ws:\S+)/.exec(said) ?? []
      if (url === undefined) return
      clearTimeout(timer)
      resolve(url)
    })
    child.once('error', reject)
  })
}

/** How a tab shows pages. */
interface View {
  readonly scripts?: boolean
  readonly width?: number
  readonly height?: number
  readonly dark?: boolean
}

export class Browser {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (told: Told) => void>()
  readonly #listeners = new Set<(told: Told) => void>()
  #sent = 0

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', data => {
      const told = JSON.parse(String(data)) as Told
      if (told.id === undefined) for (const listener of this.#listeners) listener(told)
      else this.#waiting.get(told.id)?.(told)
    })
  }

  async send<T = Tree>(method: string, params: Tree = {}, sessionId?: string): Promise<T> {
    const id = ++this.#sent
    const { result, error } = await within(
      method,
      new Promise<Told>(resolve => {
        this.#waiting.set(id, resolve)
        this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }))
      }),
    )
    this.#waiting.delete(id)
    if (error) throw new Error(`${method}: ${error.message}`)
    return result as T
  }

  /** Resolves at the next event of this name. */
  once(method: string, sessionId: string): Promise<Tree> {
    return within(
      method,
      new Promise(resolve => {
        const listener = (told: Told) => {
          if (told.method !== method || told.sessionId !== sessionId) return
          this.#listeners.delete(listener)
          resolve(told.params ?? {})
        }
        this.#listeners.add(listener)
      }),
    )
  }

  /** Calls `listener` with each event of this name. */
  on(method: string, listener: (params: Tree) => void): void {
    this.#listeners.add(told => {
      if (told.method === method) listener(told.params ?? {})
    })
  }

  /** A tab; by default without JavaScript, and as wide as a small phone. */
  async tab({ scripts = false, width = 320, height = 640, dark = false }: View = {}): Promise<Tab> {
    const { targetId } = await this.send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await this.send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true })
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.send(`${domain}.enable`, {}, sessionId)
    await this.send('Emulation.setScriptExecutionDisabled', { value: !scripts }, sessionId)
    const size = { width, height, deviceScaleFactor: 1, mobile: false }
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]
    await this.send('Emulation.setEmulatedMedia', { features }, sessionId)
    await this.send('Emulation.setDeviceMetricsOverride', size, sessionId)
    return new Tab(this, sessionId)
  }
}

async function within<T>(what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} takes longer than ${STEP_MS} ms`)), STEP_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

export class Tab {
  readonly #browser: Browser
  readonly #id: string

  constructor(browser: Browser, id: string) {
    this.#browser = browser
    this.#id = id
  }

  /** Runs `work`, which leads to another page, and resolves when that is loaded. */
  async loads(work: () => Promise<unknown>): Promise<void> {
    const loaded = this.#browser.once('Page.loadEventFired', this.#id)
    await work()
    await loaded
  }

  open(url: string): Promise<void> {
    return this.loads(() => this.#browser.send('Page.navigate', { url }, this.#id))
  }

  /** The value of an expression, which the debugger evaluates even without JavaScript. */
  async read<T>(expression: string): Promise<T> {
    const asked = { expression, returnByValue: true }
    const { result } = await this.#browser.send<{ result: { value: T } }>('Runtime.evaluate', asked, this.#id)
    return result.value
  }

  /** The value of an expression, once its promise is settled. Throws what it throws. */
  async evaluate<T>(expression: string): Promise<T> {
    const asked = { expression, returnByValue: true, awaitPromise: true }
    const { result, exceptionDetails } = await this.#browser.send<{
      result: { value: T }
      exceptionDetails?: { text: string; exception?: { description?: string } }
    }>('Runtime.evaluate', asked, this.#id)
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value
  }

  /** What is in view, as PNG. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.#browser.send<{ data: string }>('Page.captureScreenshot', { format: 'png' }, this.#id)
    return Buffer.from(data, 'base64')
  }

  /** Types into the focused field. */
  type(text: string): Promise<unknown> {
    return this.#browser.send('Input.insertText', { text }, this.#id)
  }

  async press(key: string, text?: string): Promise<void> {
    const codes: Record<string, number> = { Enter: 13, Tab: 9, ' ': 32 }
    const pressed = { key, code: key === ' ' ? 'Space' : key, windowsVirtualKeyCode: codes[key] }
    await this.#browser.send('Input.dispatchKeyEvent', { type: 'keyDown', ...pressed, ...(text && { text }) }, this.#id)
    await this.#browser.send('Input.dispatchKeyEvent', { type: 'keyUp', ...pressed }, this.#id)
  }
}
