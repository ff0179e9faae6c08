/** The admin listener: probes, metrics, and the commands of `gatewayctl`. Never on the public port. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Log } from '../core/ports.ts'
import { asError, errorBody, errors, type GatewayError } from '../lib/error.ts'
import { readBody } from './body.ts'
import { commands } from './commands/index.ts'
import { databaseStatus } from './commands/status.ts'
import type { AdminContext } from './context.ts'
import { checkHost, checkSender, tokenCheck } from './guard.ts'
import { type Answer, json, routes } from './routes.ts'
import { runCommand } from './run.ts'

const MAX_BODY_BYTES = 1024 * 1024
const COMMANDS = '/commands/'

/** Settings of the admin listener. */
interface AdminOptions {
  readonly context: AdminContext
  readonly token: string
  /** `host:port`; port 0 takes a free port. */
  readonly listen: string
  readonly log: Log
  /** Answers requests of browsers for `/ui` and below. It checks who sends them, and rejects for nothing. */
  readonly page?: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** Another name that browsers may use for the page. */
  readonly pageHost?: () => string | undefined
}

const PAGE = /^\/ui(?=[/?]|$)/

/** A listener that accepts requests. */
interface AdminListener {
  /** `host:port` in use. */
  readonly address: string
  close(): Promise<void>
}

/** Resolves once it listens. Rejects with the listen error, or a RangeError for an invalid address. */
export async function adminListener(options: AdminOptions): Promise<AdminListener> {
  const { host, port } = parseAddress(options.listen)
  const checkToken = tokenCheck(options.token)
  const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, async (request, response) => {
    try {
      if (options.page && PAGE.test(request.url!)) {
        checkHost(request, host, options.pageHost?.())
        return await options.page(request, response)
      }
      checkSender(request, host)
      send(response, await answer(request, options.context, checkToken), request.method === 'HEAD')
    } catch (thrown) {
      const error = asError(thrown)
      if (error.status < 500) return sendError(response, error)
      options.log.error({ err: thrown, path: request.url }, 'admin request failed')
      const database = await databaseStatus(options.context)
      const away = { status: 503, code: 'store_unavailable', message: `The database does not answer: ${database}` }
      sendError(response, database === 'ok' ? error : error.with(away))
    }
  })
  await listening(server, host.replace(/^\[|\]$/g, ''), port)
  const bound = server.address() as AddressInfo
  return {
    address: `${host}:${bound.port}`,
    close() {
      return new Promise((resolve, reject) => {
        server.close(error => (error ? reject(error) : resolve()))
        server.closeAllConnections()
      })
    },
  }
}

async function answer(
  request: IncomingMessage,
  context: AdminContext,
  checkToken: (request: IncomingMessage) => void,
): Promise<Answer> {
  const path = request.url!.split('?', 1)[0]!
  const method = request.method === 'HEAD' ? 'GET' : request.method!
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined
  if (!route?.open) checkToken(request)
  if (route) {
    if (method !== route.method) throw errors.methodNotAllowed(method, [route.method])
    return route.answer(context)
  }
  if (!path.startsWith(COMMANDS)) {
    throw errors.notFound(`There is no "${path}" here. Paths: ${Object.keys(routes).join(', ')} and ${COMMANDS}<name>.`)
  }
  const name = path.slice(COMMANDS.length)
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) {
    throw errors.notFound(`There is no command "${name}". Commands: ${Object.keys(commands).join(', ')}.`)
  }
  if (method !== 'POST') throw errors.methodNotAllowed(method, ['POST'])
  return json(await runCommand(name, command, await readJson(request), context, actorOf(request)))
}

const ACTOR = /^[\x20-\x7e]{1,100}$/

/** The name that the holder of the token gives itself; only the token is verified. */
function actorOf({ headers }: IncomingMessage): string {
  const given = headers['x-gateway-actor']
  return typeof given === 'string' && ACTOR.test(given) ? given : 'admin'
}

/** The body as JSON; an empty one as `{}`. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = await readBody(request, MAX_BODY_BYTES)
  if (body.length === 0) return {}
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (thrown) {
    throw errors.invalidJson(thrown instanceof Error ? thrown.message : String(thrown))
  }
}

function send(response: ServerResponse, { status, contentType, body }: Answer, headOnly = false): void {
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(headOnly ? undefined : body)
}

/** Closes the connection after a refusal instead of reading the rest of the body. */
function sendError(response: ServerResponse, error: GatewayError): void {
  for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
  response.setHeader('connection', 'close')
  send(response, json(errorBody(error), error.status))
}

/** `127.0.0.1:9901` or `[::1]:9901`. */
function parseAddress(listen: string): { host: string; port: number } {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(listen)
  if (!match) throw new RangeError(`"${listen}" is not an address to listen on; write host:port`)
  return { host: match[1]!, port: Number(match[2]) }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
