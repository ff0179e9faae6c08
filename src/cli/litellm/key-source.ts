/** Reads the keys of LiteLLM: the answers of `/key/list`, or an export of its table as JSON or CSV. */
import { jsonIn } from '../../json/json.ts'
import { download, parseUrl } from '../http.ts'
import { isAddress, readSource } from '../import-source.ts'
import { Failure, type Io } from '../io.ts'
import { isSection, listOf, type Section, sectionOf } from './sections.ts'

const EXAMPLE = 'http://litellm:4000'
const KEYS_PER_PAGE = 100
const MAX_PAGES = 100_000

/** Keys, with the teams and users that they name, where these can be read. */
export interface Accounts {
  readonly keys: readonly Section[]
  readonly teams: readonly Section[]
  readonly users: readonly Section[]
}

/** Reads a file or an address. `variable` names the variable that holds the admin key of an address. */
export async function readKeys(source: string, variable: string | undefined, io: Io): Promise<Accounts> {
  if (isAddress(source)) return readPages(parseUrl(source, EXAMPLE), variable, io)
  const text = await readSource(source, EXAMPLE, io)
  const trimmed = text.replace(/^\uFEFF/, '').trim()
  const found = /^[[{]/.test(trimmed) ? fromJson(trimmed, source) : fromCsv(trimmed)
  const { keys } = found
  if (keys.length > 0 && !keys.some(({ token }) => typeof token === 'string'))
    throw new Failure(`${source} has no keys with a token; name an answer of /key/list or an export of the key table`)
  return found
}

/** All pages of `/key/list`, `/user/list` and `/team/list`; the two last where the admin key may read them. */
async function readPages(url: URL, variable: string | undefined, io: Io): Promise<Accounts> {
  if (variable === undefined) throw new Failure('--admin-key-env is missing: the variable that holds the admin key')
  const key = io.env[variable]
  if (!key) throw new Failure(`the variable ${variable} is not set; it holds the admin key of LiteLLM`)
  const base = url.pathname.replace(/\/(?:key\/list)?$/, '')
  const pagesOf = async (
    path: string,
    query: Readonly<Record<string, string>>,
    listIn: (answer: unknown) => Section[],
  ) => {
    const all: Section[] = []
    for (let page = 1; page <= MAX_PAGES; page++) {
      const at = new URL(`${base}${path}?${new URLSearchParams({ ...query, page: String(page) })}`, url)
      const answer = parsed(await download(at, key), `${at.origin}${at.pathname}`)
      const found = listIn(answer)
      all.push(...found)
      if (found.length === 0 || page >= Number(sectionOf(answer).total_pages ?? 1)) break
    }
    return all
  }
  const optional = async (path: string, query: Readonly<Record<string, string>>, name: string) => {
    try {
      return await pagesOf(path, query, answer => listOf(sectionOf(answer)[name] ?? answer).map(sectionOf))
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown
      io.err(`remark: ${thrown.message}; ids stand in for names, and limits and models of ${name} are not known\n`)
      return []
    }
  }
  const whole = { return_full_object: 'true', include_team_keys: 'true', size: String(KEYS_PER_PAGE) }
  const keys = await pagesOf('/key/list', whole, keysIn)
  const names = (name: string) => keys.some(one => typeof one[name] === 'string')
  const teams = names('team_id') ? await optional('/team/list', {}, 'teams') : []
  const users = names('user_id') ? await optional('/user/list', { page_size: String(KEYS_PER_PAGE) }, 'users') : []
  return { keys, teams: teams.map(({ keys, ...team }) => team), users }
}

/** The message of the parser would repeat a part of the text. */
function parsed(text: string, where: string): unknown {
  const value = jsonIn(text)
  if (value === undefined) throw new Failure(`${where} is not valid JSON`)
  return value
}

function fromJson(text: string, source: string): Accounts {
  // An export of psql has an object on each line.
  const lines = text.split('\n')
  const isLines = text.startsWith('{') && lines.length > 1 && lines[0]!.trimEnd().endsWith('}')
  const value = isLines ? lines.filter(Boolean).map(line => parsed(line, source)) : parsed(text, source)
  const { teams, users } = sectionOf(value)
  return { keys: keysIn(value), teams: listOf(teams).map(sectionOf), users: listOf(users).map(sectionOf) }
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

function fromCsv(text: string): Accounts {
  const [head = [], ...rows] = rowsOf(text)
  const keys = rows
    .filter(row => row.some(cell => cell !== ''))
    .map(row => Object.fromEntries(head.map((name, at) => [name.trim(), cellOf(row[at] ?? '', name)])))
  return { keys, teams: [], users: [] }
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

/** Columns of numbers: ids and names may look like some. */
const NUMERIC = /^(?:spend|max_budget|soft_budget|max_parallel_requests|[rt]pm_limit|tpd_limit)$/

/** A cell of PostgreSQL: JSON, an array such as `{a,b}`, a number, a truth, or a text. */
function cellOf(cell: string, name: string): unknown {
  if (cell === '' || cell === '\\N' || cell === 'NULL') return null
  if (cell === 't' || cell === 'true') return true
  if (cell === 'f' || cell === 'false') return false
  if (NUMERIC.test(name) && Number.isFinite(Number(cell))) return Number(cell)
  if (!/^[[{]/.test(cell)) return cell
  return jsonIn(cell) ?? (cell.startsWith('{') ? rowsOf(cell.slice(1, -1))[0]!.filter(Boolean) : cell)
}
