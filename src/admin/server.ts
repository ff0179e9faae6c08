/** The admin listener: probes, metrics, and the commands of `gatewayctl`. Never on the public port. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Actor, Log } from '../core/ports.ts'
import type { Schema } from '../core/schema.ts'
import { asError, errorBody, errors, type GatewayError } from '../lib/error.ts'
import { compile, type Failure } from '../validation/compile.ts'
import type { Command } from './command.ts'
import { commands } from './commands/index.ts'
import type { AdminContext } from './context.ts'
import { checkSender, tokenCheck } from './guard.ts'
import { type Answer, json, routes } from './routes.ts'

const BODY_LIMIT = 1024 * 1024
const COMMANDS = '/commands/'

/** Settings of the admin listener. */
interface AdminOptions {
  readonly context: AdminContext
  readonly token: string
  /** `host:port`; port 0 takes a free port. */
  readonly listen: string
  readonly log: Log
}

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
      checkSender(request, host)
      send(response, await answer(request, options.context, checkToken), request.method === 'HEAD')
    } catch (thrown) {
      const error = asError(thrown)
      if (error.status >= 500) options.log.error({ err: thrown, path: request.url }, 'admin request failed')
      sendError(response, error)
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

/**
 * Runs a command on unvalidated arguments; throws a GatewayError that names an invalid one. `actor` is the caller, for
 * the audit log.
 */
function runCommand(
  name: string,
  { args: schema, run }: Command,
  args: unknown,
  context: AdminContext,
  actor: Actor,
): unknown {
  const validate = compile(schema.json)
  if (!validate(args)) throw argumentError(name, schema, validate.errors![0]!)
  return run(args as never, context, actor)
}

function argumentError(name: string, schema: Schema<unknown>, error: Failure): GatewayError {
  const known = Object.keys((schema.json.properties as object | undefined) ?? {})
  const takes = `${name} takes ${known.length > 0 ? known.join(', ') : 'no arguments'}`
  const argument = error.instancePath.slice(1)
  switch (error.keyword) {
    case 'additionalProperties': {
      const unknown = String(error.params.additionalProperty)
      return errors.invalidParameters(`Unknown argument "${unknown}"; ${takes}.`, unknown)
    }
    case 'required': {
      const missing = String(error.params.missingProperty)
      return errors.invalidParameters(`Argument "${missing}" is missing; ${takes}.`, missing)
    }
    case 'enum':
      return errors.invalidParameters(
        `Argument "${argument}" must be one of ${error.params.allowedValues.join(', ')}.`,
        argument,
      )
    default: {
      if (!argument) return errors.invalidParameters(`The arguments must be a JSON object; ${takes}.`)
      const hint: unknown = error.parentSchema?.description
      return errors.invalidParameters(`Argument "${argument}" ${hint ? `must be ${hint}` : error.message}.`, argument)
    }
  }
}

const ACTOR = /^[\x20-\x7e]{1,100}$/

/** The name that the holder of the token gives itself; only the token is verified. */
function actorOf({ headers }: IncomingMessage): string {
  const given = headers['x-gateway-actor']
  return typeof given === 'string' && ACTOR.test(given) ? given : 'admin'
}

/** The body as JSON; an empty one as `{}`. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    // Keep the socket open after a refusal, or the caller could not read it.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > BODY_LIMIT) break
      chunks.push(chunk)
    }
  } catch {
    throw errors.aborted()
  }
  if (size > BODY_LIMIT) throw errors.tooLarge(BODY_LIMIT)
  if (size === 0) return {}
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
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
