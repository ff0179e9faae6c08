/** The frame of every page, the parts that pages are built of, and the commands behind them. */

import { commands } from '../admin/commands/index.ts'
import type { AdminContext } from '../admin/context.ts'
import { runCommand } from '../admin/run.ts'
import type { Actor, CircuitHealth } from '../core/ports.ts'
import { milliseconds, time } from './format.ts'
import { type Html, html, link, type Value } from './html.ts'
import type { Session } from './sessions.ts'

/** Pages by path, in the order of the menu. */
export const MENU: Readonly<Record<string, string>> = {
  '/ui': 'Overview',
  '/ui/spend': 'Spend',
  '/ui/requests': 'Requests',
  '/ui/models': 'Models',
  '/ui/routes': 'Routes',
  '/ui/keys': 'Keys',
  '/ui/organizations': 'Organizations',
  '/ui/jobs': 'Jobs',
  '/ui/config': 'Configuration',
  '/ui/playground': 'Playground',
  '/ui/setup': 'Set-up',
}

/** A page without its frame. */
export interface Content {
  readonly title: string
  readonly body: Html
  /** Names of files below `/ui/static`. */
  readonly scripts?: readonly string[]
  readonly styles?: readonly string[]
  /** HTTP status; 200 by default. */
  readonly status?: number
}

const HTMX_CONFIG = JSON.stringify({ includeIndicatorStyles: false, allowEval: false, historyEnabled: false })

/** A whole document. `path` is the current entry of the menu; without a session there is no menu. */
export const document = (content: Content, path: string, session?: Session): string => {
  const { title, body, scripts = [], styles = [] } = content
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="htmx-config" content="${HTMX_CONFIG}">
<link rel="icon" href="/ui/static/icon.svg">
<title>${title} - Model Gateway</title>
${['ui.css', ...styles].map(name => html`<link rel="stylesheet" href="/ui/static/${name}">\n`)}
${scripts.map(name => html`<script src="/ui/static/${name}" defer></script>\n`)}
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
${session && header(path, session)}
<main id="main" tabindex="-1">
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`.toString()
}

const header = (path: string, session: Session): Html => html`<header>
<p class="brand">Model Gateway</p>
<nav aria-label="Pages"><ul>
${Object.entries(MENU).map(([href, name]) => html`<li><a href="${href}"${href === path && html` aria-current="page"`}>${name}</a></li>\n`)}
</ul></nav>
<form method="post" action="/ui/sign-out">${csrfField(session)}${session.person && html`<span class="hint">${session.person.name}</span> `}<button class="quiet">Sign out</button></form>
</header>`

/** The field that `POST` requires; see `Session.csrf`. */
export const csrfField = ({ csrf }: Session): Html => html`<input type="hidden" name="csrf" value="${csrf}">`

/** Characters of a cell that stand in one line. */
const MAX_LINE_CHARACTERS = 60

/** A table that scrolls sideways by itself, also by keyboard. `id` is unique on the page. A text of headers has commas. */
export function table(
  id: string,
  caption: string,
  headers: string | readonly string[],
  rows: readonly (readonly Value[])[],
  none = 'None.',
): Html {
  if (rows.length === 0) return html`<p id="${id}">${none}</p>`
  const names = typeof headers === 'string' ? headers.split(', ') : headers
  return html`<div class="scroll" id="${id}" role="region" aria-label="${caption}" tabindex="0"><table>
<thead><tr>${names.map(name => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>
${rows.map(cells => html`<tr>${cells.map(cell => html`<td${isLong(cell) && html` class="wide"`}>${isEmpty(cell) ? '–' : cell}</td>`)}</tr>\n`)}
</tbody></table></div>`
}

const isEmpty = (value: Value): boolean => value === null || value === undefined || value === false || value === ''

/** Whether the text of a cell would take the room of the other columns. */
const isLong = (cell: Value): boolean => html`${cell}`.toString().replace(/<[^<>]*>/g, '').length > MAX_LINE_CHARACTERS

/** Names with values. */
export const facts = (entries: readonly (readonly [string, Value])[]): Html =>
  html`<dl class="facts">${entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${isEmpty(value) ? '–' : value}</dd></div>\n`)}</dl>`

/** Figures that are seen first. */
export const tiles = (entries: readonly (readonly [string, Value, Value?])[]): Html =>
  html`<dl class="tiles">${entries.map(
    ([name, value, note]) =>
      html`<div><dt>${name}</dt><dd>${value}${!isEmpty(note) && html` <small>${note}</small>`}</dd></div>\n`,
  )}</dl>`

/** A word whose color repeats what it says. */
export const mark = (kind: 'good' | 'bad' | 'warn' | 'plain', text: Value): Html =>
  html`<span class="mark ${kind}">${text}</span>`

/** The state of a circuit, and for how long it stays open. */
export const circuitMark = ({ circuit, openMs }: CircuitHealth): Html =>
  mark(
    circuit === 'closed' ? 'good' : circuit === 'open' ? 'bad' : 'warn',
    circuit === 'open' && openMs > 0 ? `open for ${milliseconds(openMs)}` : circuit,
  )

/** Marks a part that is read again every `seconds` seconds, with a link that turns this on or off. */
export function live(isOn: boolean, seconds: number, address: string, query: Record<string, string>, body: Html): Html {
  const here = link(address, { ...query, live: '1' })
  const poll = html` hx-get="${here}" hx-trigger="every ${seconds}s" hx-select="#live" hx-swap="outerHTML"`
  return html`<div id="live"${isOn && poll}>
${body}
<p><span class="hint">As of ${time(Date.now())} UTC.</span> <a id="refresh" href="${link(address, { ...query, live: isOn ? '0' : '1' })}">${isOn ? `Stop the update every ${seconds} seconds` : `Update every ${seconds} seconds`}</a></p>
</div>`
}

/** A request of a browser that is signed in. */
export interface Visit {
  /** Last part of the path, for a page of one record; empty otherwise. */
  readonly id: string
  readonly query: URLSearchParams
  readonly session: Session
  readonly context: AdminContext
  /** A file of the configuration by its name in errors; undefined when it cannot be read. */
  readConfig(name: string): Promise<string | undefined>
}

/** Throws a GatewayError, which is shown in its place. */
export type Page = (visit: Visit) => Content | Promise<Content>

/** The name in the audit log of the admin token's holder; behind it stands that of a person. */
const ACTOR = 'ui'

/** The author of changes in a session. */
export const actorOf = ({ person }: Session): Actor => (person ? `${ACTOR}:${person.name}` : ACTOR)

/** Runs a command as `gatewayctl` does. `Result` is the type that the command states. Changes need their author. */
export const run = async <Result>(
  context: AdminContext,
  name: string,
  args: object = {},
  actor: Actor = ACTOR,
): Promise<Result> => (await runCommand(name, commands[name]!, args, context, actor)) as Result
