/** The server process: arguments, signals, output, exit codes. */
import { writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Gateway, startGateway } from './app/gateway.ts'
import { copyConfig } from './app/init.ts'
import { announcement, explanation, keyFileFor } from './app/notices.ts'
import { tuneHeap } from './app/v8-flags.ts'
import { version } from './app/version.ts'
import { readOverrides } from './config/environment.ts'
import { ConfigError } from './config/error.ts'
import { CONFIG_FILE, type Located, locateConfig } from './config/locate.ts'
import { type Log, StoreError } from './core/ports.ts'
import { createLog, type LogLevel, logLevel, logLevels } from './telemetry/log.ts'

const usage = `usage: gateway [--config FILE]   starts the Model Gateway
       gateway init              copies two files into this folder, to be edited: gateway.yaml and an example of a provider

  --config FILE   the configuration; without it $GATEWAY_CONFIG, else ./${CONFIG_FILE}, else the packaged one,
                  with its data in ./data
  --version       prints the version
  -h, --help      prints this

Variables that override the configuration:

  HOST, PORT             the public listener
  GATEWAY_ADMIN_LISTEN   the host:port of the admin listener
  GATEWAY_DATA           the folder of the database
  GATEWAY_LOG_LEVEL      one of ${logLevels.join(', ')}

model-gateway is the same command. gatewayctl operates a gateway that runs.`

/** Exit codes: 1 the system refused, 2 wrong use or configuration, 3 the database cannot be used. */
const FAILED = 1
const WRONG = 2
const NO_STORE = 3

/** Time to end after a second signal, in milliseconds. */
const ABORT_MS = 2_000
/** Grace for forgotten handles after everything was closed, in milliseconds. */
const FORGOTTEN_MS = 1_000

let gateway: Gateway | undefined
let log: Log | undefined
let stopping = false
/** Signals received. */
let signals = 0

void main()

async function main(): Promise<void> {
  const { env } = process
  const { init, level, located } = readArguments(env)
  if (init) return await copy()
  tuneHeap()
  // Workers inherit it.
  if (located.packaged) env.GATEWAY_DATA ||= resolve('data')
  const config = located.path
  try {
    log = createLog(level)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop)
    // During the start there is nothing to reload: the files are read by the start and checked once after it.
    process.on('SIGHUP', () => void gateway?.reload().catch(() => undefined))
    gateway = await startGateway({ config, env, log, onDrain: stopOnce })
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
      process.on(event, (err: unknown) => {
        log?.error({ err, event }, 'uncaught error; gateway drains')
        process.exitCode = FAILED
        stopOnce()
      })
    }
    // Even when a signal has arrived: the first key is shown now or never.
    announce(gateway, located)
    const { listen, admin } = gateway
    log.info({ version, pid: process.pid, listen, admin, config }, 'gateway started')
    if (stopping) return await end(gateway)
  } catch (thrown) {
    console.error(explanation(thrown, located))
    process.exitCode = thrown instanceof StoreError ? NO_STORE : thrown instanceof ConfigError ? WRONG : FAILED
  }
}

interface Arguments {
  /** Whether to only copy the packaged configuration. */
  readonly init: boolean
  readonly level: LogLevel
  readonly located: Located
}

/** Reads the command line and the environment. Ends the process on invalid values. */
function readArguments(env: NodeJS.ProcessEnv): Arguments {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { config: { type: 'string' }, help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } },
    })
    if (values.help || values.version) {
      console.log(values.help ? usage : version)
      process.exit(0)
    }
    const [command, ...more] = positionals
    if (more.length > 0 || (command !== undefined && command !== 'init')) {
      throw new Error(`unknown command "${positionals.join(' ')}"; run without a command to start the gateway`)
    }
    readOverrides(env)
    const level = logLevel(env.GATEWAY_LOG_LEVEL)
    return { init: command === 'init', level, located: locateConfig(values.config, env, process.cwd()) }
  } catch (thrown) {
    console.error(`gateway: ${thrown instanceof Error ? thrown.message : thrown}\n\n${usage}`)
    process.exit(WRONG)
  }
}

async function copy(): Promise<void> {
  try {
    console.log(await copyConfig(process.cwd()))
  } catch (thrown) {
    console.error(`gateway: ${thrown instanceof Error ? thrown.message : thrown}`)
    process.exitCode = FAILED
  }
}

/** Also by an operator or after an error: neither is a signal, so the first signal after it still drains. */
function stopOnce(): void {
  if (stopping) return
  stopping = true
  log?.info({}, 'gateway stops')
  if (gateway) void end(gateway)
}

/** The first signal drains, the second ends running requests and flushes the stores, the third exits at once. */
function stop(): void {
  signals++
  if (signals === 1) stopOnce()
  else if (signals === 2) {
    gateway?.abortDrain()
    setTimeout(() => process.exit(FAILED), ABORT_MS).unref()
  } else if (signals > 2) process.exit(FAILED)
}

/** The process ends by itself then; a forgotten handle does not keep it. */
async function end(gateway: Gateway): Promise<void> {
  try {
    await gateway.stop()
    log?.info({}, 'gateway stopped')
  } catch (thrown) {
    console.error(`gateway: ${thrown instanceof Error ? thrown.message : thrown}`)
    process.exitCode = FAILED
  }
  setTimeout(() => process.exit(), FORGOTTEN_MS).unref()
}

function announce(gateway: Gateway, located: Located): void {
  console.log(announcement(gateway, located, keyFileFor(gateway, process.env)))
  const { listen, admin, firstKey } = gateway
  const fd = Number(process.env.GATEWAY_READY_FD)
  // For programs that start gateways: one JSON line on a descriptor of their choice.
  if (fd > 2) writeSync(fd, `${JSON.stringify({ listen, admin, key: firstKey ?? null, pid: process.pid })}\n`)
}
