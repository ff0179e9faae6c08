/** Scripts and styles of the page, served from its own origin: own ones, and those of two packages as they are installed. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

const compress = promisify(gzip)
const { resolve } = createRequire(import.meta.url)
const own = (name: string) => new URL(`./static/${name}`, import.meta.url)

const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'
const files: Readonly<Record<string, readonly [contentType: string, place: () => string | URL]>> = {
  'htmx.js': [SCRIPT, () => resolve('htmx.org/dist/htmx.min.js')],
  'uplot.js': [SCRIPT, () => resolve('uplot/dist/uPlot.iife.min.js')],
  'uplot.css': [STYLE, () => resolve('uplot/dist/uPlot.min.css')],
  'icon.svg': ['image/svg+xml', () => own('icon.svg')],
  'chart.js': [SCRIPT, () => own('chart.js')],
  'playground.js': [SCRIPT, () => own('playground.js')],
  'ui.css': [STYLE, () => own('ui.css')],
}

/** A file as it is sent. */
export interface StaticFile {
  readonly contentType: string
  readonly body: Buffer
  readonly gzipped: Buffer
  /** Changes with the content. */
  readonly etag: string
}

const read = new Map<string, Promise<StaticFile>>()

/** Undefined for an unknown name. A file is read once. Rejects when it is not installed. */
export function staticFile(name: string): Promise<StaticFile> | undefined {
  if (!Object.hasOwn(files, name)) return undefined
  const file = read.get(name) ?? load(...files[name]!)
  read.set(name, file)
  file.catch(() => read.delete(name))
  return file
}

async function load(contentType: string, place: () => string | URL): Promise<StaticFile> {
  const body = await readFile(place())
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  return { contentType, body, gzipped: await compress(body), etag }
}
