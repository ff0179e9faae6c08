/** Where the gateway's CPU time goes: its functions by self time under one load. */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, saturate } from './driver.mjs'
import { root, startGateway } from './gateway.mjs'
import { shotOf } from './loads.mjs'

/** The profiler slows the process; more requests than a measuring run has give steadier shares. */
const SLICES = 30
/** What a chain hands a request on to: the next filter, or the provider. */
const BEYOND = /^src\/(core\/(chain|pump)|upstream\/.*|http\/.*)\.ts$/

/** Runs a load on a gateway of its own under `--cpu-prof`. */
async function record(stage, load, config, { scale }) {
  const folder = await stage.folder()
  const gateway = await startGateway(stage, config, ['--cpu-prof', `--cpu-prof-dir=${folder}`])
  const client = new Client(gateway, load.concurrency)
  const shot = shotOf(load, gateway)
  const count = Math.ceil(load.slice * SLICES * scale)
  await saturate(client, shot, { ...load, count: Math.ceil(count / 3) })
  const from = nowUs()
  await saturate(client, shot, { ...load, count })
  const to = nowUs()
  await client.close()
  await gateway.stop()
  const [file] = await readdir(folder)
  if (!file) throw new Error(`${load.name}: the gateway left no profile`)
  return new Profile(JSON.parse(await readFile(join(folder, file), 'utf8')), { from, to, count })
}

/** V8 stamps samples with the monotonic clock, which all processes share. */
const nowUs = () => Number(process.hrtime.bigint() / 1000n)

/** A gateway's functions under a load, busiest first. */
export async function profileLoad(stage, load, config, effort) {
  const profile = await record(stage, load, config, effort)
  const modules = new Modules()
  const self = new Map()
  for (const { frame, us } of profile.leaves()) {
    const key = `${frame.functionName} ${frame.url}:${frame.lineNumber}`
    const entry = self.get(key) ?? { frame, us: 0 }
    entry.us += us
    self.set(key, entry)
  }
  const rows = [...self.values()].sort((a, b) => b.us - a.us)
  return Promise.all(
    rows.map(async ({ frame, us }) => ({
      function: frame.functionName || '(anonymous)',
      at: await modules.locate(frame),
      share: us / profile.busyUs,
      usPerRequest: us / profile.count,
    })),
  )
}

/** Who causes what runs by itself, without a filter on the stack: transactions gather what several requests write. */
const deferred = [{ filter: 'billing', module: /^src\/stores\/sqlite\// }]

/**
 * Time per request in microseconds, waiting for the disk included, by filter: the samples in which a function of the
 * filter's module stands on the stack and nothing of what it passes the request on to, and those of what it defers.
 * What a filter has begun and what goes on elsewhere after a promise, such as reading the body, is not in it.
 * @returns {Promise<Map<string, number>>}
 */
export async function profileFilters(stage, load, config, filters, effort) {
  const profile = await record(stage, load, config, effort)
  const modules = new Modules()
  const spent = new Map()
  for (const { stack, us } of profile.leaves()) {
    const filter = ownerOf(await Promise.all([...stack()].map(frame => modules.moduleOf(frame))), filters)
    if (filter) spent.set(filter, (spent.get(filter) ?? 0) + us / profile.count)
  }
  return spent
}

/** The filter that a stack belongs to, by the modules of its frames, the innermost first; others are its helpers. */
function ownerOf(modules, filters) {
  for (const module of modules) {
    if (module === undefined) continue
    if (BEYOND.test(module)) return undefined
    const filter = /^src\/filters\/([\w-]+)\.ts$/.exec(module)?.[1]
    if (filters.includes(filter)) return filter
  }
  return deferred.find(({ module }) => modules.some(name => module.test(name ?? '')))?.filter
}

/** The samples of one load. */
class Profile {
  count
  busyUs = 0
  /** By the node of the call tree that was running. @type {Map<number, number>} */
  #us = new Map()
  #nodes
  #parents = new Map()

  constructor({ nodes, samples, timeDeltas, startTime }, { from, to, count }) {
    this.count = count
    this.#nodes = new Map(nodes.map(node => [node.id, node]))
    for (const { id, children = [] } of nodes) for (const child of children) this.#parents.set(child, id)
    let at = startTime
    for (const [index, id] of samples.entries()) {
      at += timeDeltas[index]
      if (at < from || at > to || this.#nodes.get(id).callFrame.functionName === '(idle)') continue
      // A sample stands for the time until the next one.
      const us = timeDeltas[index + 1] ?? 0
      this.busyUs += us
      this.#us.set(id, (this.#us.get(id) ?? 0) + us)
    }
  }

  /** What ran, for how long, and the frames from it to the outermost. */
  leaves() {
    return [...this.#us].map(([id, us]) => ({ frame: this.#nodes.get(id).callFrame, us, stack: () => this.#stack(id) }))
  }

  *#stack(id) {
    for (let at = id; at !== undefined; at = this.#parents.get(at)) yield this.#nodes.get(at).callFrame
  }
}

/** Tells which source module a place in a bundle came from: the bundler writes its path before each. */
class Modules {
  #files = new Map()

  async locate(frame) {
    const { url, lineNumber } = frame
    if (!url.startsWith('file:')) return url === '' ? '' : `${url}:${lineNumber + 1}`
    const place = `${relative(root, fileURLToPath(url))}:${lineNumber + 1}`
    const module = await this.moduleOf(frame)
    return module ? `${place} (${module})` : place
  }

  /** Undefined for what is not of a bundle. */
  async moduleOf({ url, lineNumber }) {
    if (!url.startsWith('file:')) return undefined
    const lines = await this.#lines(fileURLToPath(url))
    for (let line = Math.min(lineNumber, lines.length - 1); line >= 0; line--) {
      const module = /^ {0,2}\/\/ (\S+\.[cm]?[jt]s)$/.exec(lines[line])?.[1]
      if (module) return module
    }
    return undefined
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
