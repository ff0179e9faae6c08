/** nginx and Caddy with the files of `deploy`, on a free port in front of a gateway. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { makeAuthority } from './certificates.ts'
import type { Scope } from './child.ts'
import { freePort } from './postgres.ts'
import { root } from './sources.ts'

/** The name that the examples serve. */
export const HOST = 'gateway.example.com'

/** A running proxy. */
export interface ReverseProxy {
  readonly port: number
  /** The certificate of the authority that signed the proxy's own. */
  readonly ca: Buffer
  /** What the proxy has written to its access log and its errors. */
  log(): string
  /** Resolves when its errors have a line that fits. */
  said(wanted: RegExp): Promise<void>
}

/** What a proxy needs of its machine. */
interface Place {
  readonly folder: string
  readonly port: number
  readonly gateways: readonly number[]
}

interface Kind {
  /** Value of tap's option `skip`. */
  readonly skip: string | false
  /** Writes the files of `deploy`, changed for this place; returns the command, and another that checks the files. */
  prepare(place: Place): { readonly run: readonly string[]; readonly check: readonly string[] }
  /** A line that says that the proxy serves. */
  readonly ready: RegExp
}

const programOf = (name: string, version: string): string | undefined =>
  [name, `/usr/sbin/${name}`].find(path => spawnSync(path, [version]).status === 0)
const nginx = programOf('nginx', '-v')
const caddy = programOf('caddy', 'version')
const deployed = (path: string): string => readFileSync(join(root, 'deploy', path), 'utf8')

/** By name. */
export const proxies: Readonly<Record<'nginx' | 'caddy', Kind>> = {
  nginx: {
    skip: nginx === undefined && 'nginx is not installed',
    ready: /start worker process \d/,
    prepare({ folder, port, gateways }) {
      const servers = gateways.map(to => `server 127.0.0.1:${to} max_fails=1 fail_timeout=2s;`).join('\n')
      const conf = deployed('nginx/model-gateway.conf')
        .replaceAll(/listen \[::\].*\n/g, '')
        .replace('listen 80;', `listen unix:${folder}/plain.socket;`)
        .replace('listen 443 ', `listen 127.0.0.1:${port} `)
        .replaceAll('/etc/nginx/tls/gateway', join(folder, 'own'))
        .replaceAll('/var/log/nginx/', `${folder}/`)
      writeFileSync(join(folder, 'site.conf'), conf)
      writeFileSync(
        join(folder, 'upstream.conf'),
        deployed('nginx/upstream.conf').replace(/server .*;/, () => servers),
      )
      const user = process.getuid?.() === 0 ? 'user root;' : ''
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map(name => `${name}_temp_path ${folder}/${name};`)
        .join(' ')
      const main = `${user} daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr notice;
        events {} http { ${temporary} include ${folder}/upstream.conf; include ${folder}/site.conf; }`
      writeFileSync(join(folder, 'nginx.conf'), main)
      const run = [nginx!, '-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr']
      return { run, check: [...run, '-t'] }
    },
  },
  caddy: {
    skip: caddy === undefined && 'Caddy is not installed',
    ready: /serving initial configuration/,
    prepare({ folder, port, gateways }) {
      const file = deployed('caddy/Caddyfile')
        .replace(`${HOST} {`, `https://${HOST}:${port} {\n\ttls ${folder}/own.crt ${folder}/own.key`)
        .replace('reverse_proxy 127.0.0.1:8080', `reverse_proxy ${gateways.map(to => `127.0.0.1:${to}`).join(' ')}`)
      const path = join(folder, 'Caddyfile')
      writeFileSync(path, file.replace(/^\{/m, '{\n\tadmin off\n\tauto_https disable_redirects'))
      const words = ['--config', path, '--adapter', 'caddyfile']
      return { run: [caddy!, 'run', ...words], check: [caddy!, 'validate', ...words] }
    },
  },
}

/** Checks the files of a proxy with the proxy itself, starts it, and ends it with the test. */
export async function startProxy(
  t: Scope,
  name: keyof typeof proxies,
  gateways: readonly number[],
): Promise<ReverseProxy> {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`))
  const authority = makeAuthority(t)
  const { key, cert } = authority.certificate('own', `DNS:${HOST}`, 2)
  writeFileSync(join(folder, 'own.key'), key)
  writeFileSync(join(folder, 'own.crt'), cert)
  mkdirSync(join(folder, 'home'))
  const { prepare, ready } = proxies[name]
  const port = await freePort()
  const { run, check } = prepare({ folder, port, gateways })
  const env = { PATH: process.env.PATH, HOME: join(folder, 'home') }
  const checked = spawnSync(check[0]!, check.slice(1), { env, encoding: 'utf8' })
  if (checked.status !== 0) throw new Error(`${name} refuses its configuration: ${checked.stderr}`)
  const child = spawn(run[0]!, run.slice(1), { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise(resolve => child.once('close', resolve))
  const kill = () => child.kill('SIGTERM')
  process.once('exit', kill)
  const errors = new Lines(child)
  t.teardown(async () => {
    process.off('exit', kill)
    kill()
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  await errors.until(ready)
  const logged = () => (name === 'nginx' ? readFileSync(join(folder, 'model-gateway.log'), 'utf8') : '')
  return {
    port,
    ca: readFileSync(authority.path),
    log: () => errors.text + logged(),
    said: wanted => errors.until(wanted),
  }
}

/** Standard error of a process. */
class Lines {
  text = ''
  #ended = false
  #wake = (): void => undefined

  constructor(child: ChildProcess) {
    createInterface({ input: child.stderr as Readable }).on('line', line => {
      this.text += `${line}\n`
      this.#wake()
    })
    child.once('close', () => {
      this.#ended = true
      this.#wake()
    })
  }

  /** Resolves when the text fits; rejects when the process ends before. One caller at a time. */
  async until(wanted: RegExp): Promise<void> {
    while (!wanted.test(this.text)) {
      if (this.#ended) throw new Error(`the proxy ended: ${this.text}`)
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }
}
