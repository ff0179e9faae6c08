/** The server's process: arguments, signals, what it says and how it ends. */
import { writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ConfigError } from './config/error.ts'
import { isLive } from './core/offer.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { tuneHeap } from './heap.ts'
import { StoreError } from './stores/sqlite/index.ts'
import { createLog, type LogLevel, logLevel } from './telemetry/log.ts'
import { version } from './version.ts'

const usage = `usage: gateway [--config FILE]

Starts the Model Gateway. Without --config it reads $GATEWAY_CONFIG, else ./config/gateway.yaml.`

/** Exit codes: 1 the system refused, 2 wrong use or configuration, 3 the database cannot be used. */
const FAILED = 1
const WRONG = 2
const NO_STORE = 3

/** After a second signal. */
const HURRY_MS = 2_000
/** After everything was closed. */
const FORGOTTEN_MS = 1_000

let gateway: Gateway | undefined
let stopping = false
/** How many signals asked for the end. */
let signals = 0

void main()

async function main(): Promise<void> {
  tuneHeap()
  const { env } = process
  const { config, level } = readArguments(env)
  try {
    const log = createLog(level)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop)
    // Before there is a gateway there is nothing to reload: files are read at the start, and once more after it.
    process.on('SIGHUP', () => void gateway?.reload().catch(() => undefined))
    gateway = await startGateway({ config, env, log, onDrain: stopOnce })
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
      process.on(event, (err: unknown) => {
        log.error({ err }, `${event}: the gateway drains and ends`)
        process.exitCode = FAILED
        stopOnce()
      })
    }
    // Also when a signal came meanwhile: a first key is shown now or never.
    announce(gateway, config)
    if (stopping) return await end(gateway)
  } catch (thrown) {
    console.error(explain(thrown, config))
    process.exitCode = thrown instanceof StoreError ? NO_STORE : thrown instanceof ConfigError ? WRONG : FAILED
  }
}

/** What the command line and the environment say. Ends the process for what it cannot use. */
function readArguments(env: NodeJS.ProcessEnv): { config: string; level: LogLevel } {
  try {
    const { values } = parseArgs({
      options: { config: { type: 'string' }, help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } },
    })
    if (values.help || values.version) {
      console.log(values.help ? usage : version)
      process.exit(0)
    }
    const config = values.config ?? (env.GATEWAY_CONFIG || 'config/gateway.yaml')
    return { config, level: logLevel(env.GATEWAY_LOG_LEVEL) }
  } catch (thrown) {
    console.error(`${thrown instanceof Error ? thrown.message : thrown}\n\n${usage}`)
    process.exit(WRONG)
  }
}

/** Also by an operator, or after an error, neither of which is a signal: the first signal after that cuts nobody off. */
function stopOnce(): void {
  if (stopping) return
  stopping = true
  if (gateway) void end(gateway)
}

/** The first signal drains, the second ends what runs and keeps what must be kept, the third ends at once. */
function stop(): void {
  signals++
  if (signals === 1) stopOnce()
  else if (signals === 2) {
    gateway?.hurry()
    setTimeout(() => process.exit(FAILED), HURRY_MS).unref()
  } else if (signals > 2) process.exit(FAILED)
}

/** Nothing is left to do then, and the process ends by itself; a handle that somebody forgot does not keep it. */
async function end(gateway: Gateway): Promise<void> {
  try {
    await gateway.stop()
  } catch (thrown) {
    console.error(`gateway: ${thrown instanceof Error ? thrown.message : thrown}`)
    process.exitCode = FAILED
  }
  setTimeout(() => process.exit(), FORGOTTEN_MS).unref()
}

function announce({ listen, admin, publicUrl, catalog, firstKey }: Gateway, config: string): void {
  const providers = [...catalog.providers.values()]
  const live = providers.filter(isLive)
  const lines = [
    `Model Gateway ${version}`,
    `  listens on   http://${listen}`,
    ...(publicUrl === undefined ? [] : [`  public URL   ${publicUrl}`]),
    `  admin        http://${admin}`,
    `  config       ${config}, ${catalog.models.size} models, ${providers.length} providers of which ${live.length} live`,
    '',
  ]
  if (firstKey) {
    lines.push(
      'Your API key, shown only this once:',
      '',
      `  ${firstKey}`,
      '',
      'Try it:',
      '',
      curl(listen, firstKey),
      '',
    )
  } else {
    lines.push('Make a key with: npx gatewayctl keys create --project default', '')
  }
  if (live.length < providers.length) {
    lines.push('Set OPENAI_API_KEY, ANTHROPIC_API_KEY, … and restart to use more: npx gatewayctl providers list', '')
  }
  console.log(lines.join('\n'))
  const fd = Number(process.env.GATEWAY_READY_FD)
  // For whoever starts gateways by program: one JSON line on a descriptor of its choice.
  if (fd > 2) writeSync(fd, `${JSON.stringify({ listen, admin, key: firstKey ?? null, pid: process.pid })}\n`)
}

const curl = (listen: string, key: string): string =>
  `  curl http://${listen}/v1/chat/completions -H "Authorization: Bearer ${key}" ` +
  `-H "Content-Type: application/json" -d '{"model":"demo","messages":[{"role":"user","content":"Hello!"}]}'`

function explain(thrown: unknown, config: string): string {
  if (thrown instanceof ConfigError) return `gateway: ${thrown}`
  const { code, message, port } = thrown as NodeJS.ErrnoException & { port?: number }
  if (code === 'EADDRINUSE') {
    return `gateway: port ${port} is in use; end the other process, or change server.listen or server.admin in ${config}`
  }
  return `gateway: ${message ?? thrown}`
}
