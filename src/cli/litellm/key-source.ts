/** Reads the keys of LiteLLM: the answers of `/key/list`, or an export of its table as JSON or CSV. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { call, parseUrl, readText } from '../http.ts'
import { errorCode, Failure, type Io } from '../io.ts'
import { isSection, listOf, type Section, sectionOf } from './sections.ts'

/** Keys of one page. */
const PAGE = 100
const MAX_PAGES = 100_000

/** Each key as a section. `variable` names the variable that holds the admin key of an address. */
export async function readKeys(source: string, variable: string | undefined, io: Io): Promise<Section[]> {
  if (/^https?:\/\//i.test(source)) return download(parseUrl(source, 'http://litellm:4000'), variable, io)
  const path = resolve(io.cwd, source)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (thrown) {
    throw new Failure(`${path} cannot be read: ${errorCode(thrown) ?? 'unknown error'}`)
  }
  const trimmed = text.replace(/^\uFEFF/, '').trim()
  const keys = /^[[{]/.test(trimmed) ? fromJson(trimmed, source) : fromCsv(trimmed)
  if (keys.length > 0 && !keys.some(({ token }) => typeof token === 'string'))
    throw new Failure(`${source} has no keys with a token; name an answer of /key/list or an export of the key table`)
  return keys
}

/** All pages of `/key/list`. */
async function download(url: URL, variable: string | undefined, io: Io): Promise<Section[]> {
  if (variable === undefined) throw new Failure('--admin-key-env is missing: the variable that holds the admin key')
  const key = io.env[variable]
  if (!key) throw new Failure(`the variable ${variable} is not set; it holds the admin key of LiteLLM`)
  const base = url.pathname.replace(/\/(?:key\/list)?$/, '')
  const keys: Section[] = []
  for (let page = 1; page <= MAX_PAGES; page++) {
    const query = { return_full_object: 'true', include_team_keys: 'true', page: String(page), size: String(PAGE) }
    const at = new URL(`${base}/key/list?${new URLSearchParams(query)}`, url)
    const answer = sectionOf(parsed(await textAt(at, key), `${at.origin}${at.pathname}`))
    const found = keysIn(answer)
    keys.push(...found)
    const last = Number(answer.total_pages ?? 1)
    if (found.length === 0 || page >= last) return keys
  }
  return keys
}

async function textAt(url: URL, key: string): Promise<string> {
  const where = `${url.origin}${url.pathname}`
  try {
    const response = await call(url, { method: 'GET', headers: { authorization: `Bearer ${key}` } })
    const text = await readText(response)
    if (response.statusCode === 200) return text
    throw new Failure(`${where} answered with status ${response.statusCode}; 200 is needed`)
  } catch (thrown) {
    if (thrown instanceof Failure) throw thrown
    throw new Failure(`${where} cannot be reached: ${errorCode(thrown) ?? 'the connection broke'}`)
  }
}

/** The message of the parser would repeat a part of the text. */
function parsed(text: string, where: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Failure(`${where} is not valid JSON`)
  }
}

function fromJson(text: string, source: string): Section[] {
  // An export of psql has an object on each line.
  const lines = text.split('\n')
  const isLines = text.startsWith('{') && lines.length > 1 && lines[0]!.trimEnd().endsWith('}')
  return keysIn(isLines ? lines.filter(Boolean).map(line => parsed(line, source)) : parsed(text, source))
}

/** Keys of an answer or a list; one that is a text is a hash. */
function keysIn(value: unknown): Section[] {
  const list = Array.isArray(value)
    ? value
    : isSection(value) && 'token' in value
      ? [value]
      : listOf(sectionOf(value).keys ?? sectionOf(value).data)
  return list.map(one => (typeof one === 'string' ? { token: one } : sectionOf(one)))
}

function fromCsv(text: string): Section[] {
  const [head = [], ...rows] = rowsOf(text)
  return rows
    .filter(row => row.some(cell => cell !== ''))
    .map(row => Object.fromEntries(head.map((name, at) => [name.trim(), cellOf(row[at] ?? '')])))
}

/** Cells of a CSV, in which `""` within quotes is a quote. */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [[]]
  let [cell, isQuoted] = ['', false]
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (isQuoted && char === '"' && text[at + 1] === '"') cell += text[++at]
    else if (char === '"') isQuoted = !isQuoted
    else if (isQuoted || (char !== ',' && char !== '\n')) cell += char === '\r' && !isQuoted ? '' : char
    else {
      rows.at(-1)!.push(cell)
      cell = ''
      if (char === '\n') rows.push([])
    }
  }
  rows.at(-1)!.push(cell)
  return rows
}

/** A cell of PostgreSQL: JSON, an array such as `{a,b}`, a number, a truth, or a text. */
function cellOf(cell: string): unknown {
  if (cell === '' || cell === '\\N' || cell === 'NULL') return null
  if (cell === 't' || cell === 'true') return true
  if (cell === 'f' || cell === 'false') return false
  if (/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(cell) && cell.length < 20) return Number(cell)
  if (!/^[[{]/.test(cell)) return cell
  try {
    return JSON.parse(cell)
  } catch {
    return cell.startsWith('{') ? rowsOf(cell.slice(1, -1))[0]!.filter(Boolean) : cell
  }
}
