/** Where the gateway's CPU time goes: its functions by self time under one load. */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shotOf } from './cases.mjs'
import { Client, saturate } from './driver.mjs'
import { root, startGateway } from './gateway.mjs'

/** The profiler slows the process; more requests than a measuring run give steadier shares. */
const REPEATS = 3

/** Runs a load on a gateway of its own under `--cpu-prof`. Resolves with its functions, busiest first. */
export async function profileLoad(stage, load, config, { scale }) {
  const folder = await stage.folder()
  const gateway = await startGateway(stage, config, ['--cpu-prof', `--cpu-prof-dir=${folder}`])
  const client = new Client(gateway, load.concurrency)
  const shot = shotOf(load, gateway)
  const count = Math.ceil(load.count * REPEATS * scale)
  await saturate(client, shot, { ...load, count: Math.ceil(count / 3) })
  const from = nowUs()
  await saturate(client, shot, { ...load, count })
  const to = nowUs()
  await client.close()
  await gateway.stop()
  const [file] = await readdir(folder)
  if (!file) throw new Error(`${load.name}: the gateway left no profile`)
  return functions(JSON.parse(await readFile(join(folder, file), 'utf8')), { from, to, count })
}

/** V8 stamps samples with the monotonic clock, which all processes share. */
const nowUs = () => Number(process.hrtime.bigint() / 1000n)

async function functions({ nodes, samples, timeDeltas, startTime }, { from, to, count }) {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const self = new Map()
  let at = startTime
  let busyUs = 0
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index]
    const frame = frames.get(id)
    if (at < from || at > to || frame.functionName === '(idle)') continue
    const key = `${frame.functionName} ${frame.url}:${frame.lineNumber}`
    const entry = self.get(key) ?? { frame, us: 0 }
    // A sample stands for the time until the next one.
    const us = timeDeltas[index + 1] ?? 0
    entry.us += us
    busyUs += us
    self.set(key, entry)
  }
  const modules = new Modules()
  const rows = [...self.values()].sort((a, b) => b.us - a.us)
  return Promise.all(
    rows.map(async ({ frame, us }) => ({
      function: frame.functionName || '(anonymous)',
      at: await modules.locate(frame),
      share: us / busyUs,
      usPerRequest: us / count,
    })),
  )
}

/** Tells which source module a place in a bundle came from: the bundler writes its path before each. */
class Modules {
  #files = new Map()

  async locate({ url, lineNumber }) {
    if (!url.startsWith('file:')) return url === '' ? '' : `${url}:${lineNumber + 1}`
    const path = fileURLToPath(url)
    const place = `${relative(root, path)}:${lineNumber + 1}`
    const lines = await this.#lines(path)
    for (let line = Math.min(lineNumber, lines.length - 1); line >= 0; line--) {
      const module = /^ {0,2}\/\/ (\S+\.[cm]?[jt]s)$/.exec(lines[line])?.[1]
      if (module) return `${place} (${module})`
    }
    return place
  }

  #lines(path) {
    let lines = this.#files.get(path)
    if (!lines) {
      lines = readFile(path, 'utf8').then(text => text.split('\n'))
      this.#files.set(path, lines)
    }
    return lines
  }
}
