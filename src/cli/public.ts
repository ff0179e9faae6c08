/** Requests of commands to the public listener, with the rights and limits of a client. */
import { access, constants } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Status } from '../admin/commands/status.ts'
import { START } from '../config/locate.ts'
import type { OperatorSession } from '../core/ports.ts'
import { parseError } from './admin.ts'
import { call, type HttpCall, parseUrl, readText, unreachable } from './http.ts'
import { Failure, type Io, oneLine, unwritable } from './io.ts'
import { readSecret, refuseSecret } from './secrets.ts'
import type { Session } from './session.ts'

/** Maximum time of a provider for a whole answer. */
const SILENCE_MS = 900_000

const PUBLIC_EXAMPLE = 'http://127.0.0.1:8080'

/** Options that `addPublicOptions` adds. */
export interface PublicOptions {
  readonly keyStdin?: boolean
  readonly project: string
  readonly url?: string
  /** The file of the answer. */
  readonly out?: string
}

type Content = Pick<HttpCall, 'body' | 'form'>

/** Adds `--key-stdin`, `--project` and `--url`; refuses `--key`, because arguments are visible in the process list. */
export function addPublicOptions(command: Command): void {
  command
    .option(
      '--key-stdin',
      'read an API key from standard input (default: GATEWAY_API_KEY, else the admin token suffices)',
    )
    .option('--project <project>', 'the project to bill when no key is given', 'default')
    .option('--url <url>', 'the public listener (default: as the admin listener reports it)')
  refuseSecret(command, '--key', 'set GATEWAY_API_KEY, or write the key to standard input with --key-stdin')
}

/** Resolves with the head of an answer below 400; a Failure for any other. `name` is the command's. */
export async function post(
  name: string,
  path: string,
  content: Content,
  options: PublicOptions,
  session: Session,
): Promise<IncomingMessage> {
  if (options.out !== undefined) await checkFolder(options.out, session.io)
  const own = options.keyStdin ? await readSecret(session.io, `${name} --key-stdin`) : session.io.env.GATEWAY_API_KEY
  return withKey(own, options.project, session, key => send(path, content, options, session, key))
}

/** Rejects with a Failure where the folder of a file cannot be written: the answer would be paid for, and lost. */
async function checkFolder(name: string, { cwd }: Io): Promise<void> {
  await access(dirname(resolve(cwd, name)), constants.W_OK).catch((thrown: unknown) => {
    throw unwritable(name, thrown)
  })
}

/** Sends one request with a key: `own`, else that of a session of the admin listener, which ends when `send` resolves. */
export async function withKey<T>(
  own: string | undefined,
  project: string,
  { admin, io }: Session,
  send: (key: string) => Promise<T>,
): Promise<T> {
  if (own) return send(own)
  const { id, key } = await admin.command<OperatorSession>('sessions.begin', { project })
  try {
    return await send(key)
  } finally {
    // The key is no longer needed: the request was accepted or refused.
    await admin.command('sessions.end', { id }).catch((thrown: unknown) => {
      io.err(`the session of this request could not be ended and expires within a minute: ${oneLine(thrown)}\n`)
    })
  }
}

async function send(
  path: string,
  content: Content,
  options: PublicOptions,
  session: Session,
  key: string,
): Promise<IncomingMessage> {
  const url = new URL(`${await publicBase(options.url, session)}${path}`)
  try {
    const headers = { authorization: `Bearer ${key}`, 'x-source': 'gatewayctl' }
    const response = await call(url, { method: 'POST', headers, ...content, silenceMs: SILENCE_MS })
    if (response.statusCode! < 400) return response
    const error = parseError(await readText(response))
    throw new Failure(error?.message ?? `${url.origin} answered with status ${response.statusCode}`, error)
  } catch (thrown) {
    if (!unreachable(thrown)) throw thrown
    throw new Failure(`cannot reach the gateway at ${url.origin}; start it with ${START} or pass --url`)
  }
}

/** A JSON answer of the public listener; throws a Failure for any other text. */
export function parseAnswer<T>(text: string): T {
  try {
    return JSON.parse(text) as T
  } catch {
    throw new Failure("the answer is not JSON; pass the gateway's public listener as --url")
  }
}

/** The address of the public listener, without `/v1` and without a trailing slash. */
export async function publicBase(given: string | undefined, session: Session): Promise<string> {
  const base = await publicUrl(given, session)
  return `${base.origin}${base.pathname.replace(/\/(?:v1\/?)?$/, '')}`
}

/** A gateway that listens on every address is reached at the host of its admin listener. */
export async function publicUrl(given: string | undefined, { admin }: Session): Promise<URL> {
  if (given !== undefined) return parseUrl(given, PUBLIC_EXAMPLE)
  const { listen } = await admin.command<Status>('status')
  const url = parseUrl(listen, PUBLIC_EXAMPLE)
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = (await admin.url()).hostname
  return url
}
