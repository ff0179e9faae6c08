/** Keys, and organizations with their credits. No secret is kept of a key, so none can be shown. */

import { showLimits, showRates } from '../../admin/arguments.ts'
import type { ShownKey } from '../../admin/commands/keys.ts'
import type { LedgerEntry, MemberRecord, OrganizationRecord, ProjectRecord } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { time, usd } from '../format.ts'
import { html, link } from '../html.ts'
import { type Content, facts, mark, run, table, tiles, type Visit } from '../layout.ts'

const RECORDS = 100

/** Arguments of a part of a list. */
const partOf = (query: URLSearchParams) => ({
  limit: RECORDS,
  ...(query.get('after') && { after: query.get('after') }),
})

const more = (path: string, found: readonly { readonly id: string }[], query: Record<string, string> = {}) =>
  found.length === RECORDS &&
  html`<p><a rel="next" href="${link(path, { ...query, after: found.at(-1)!.id })}">More</a></p>`

/** Says that a list goes on, and how to see the rest. */
const cut = (found: readonly unknown[], most: number, command: string) =>
  found.length === most &&
  html`<p class="hint">At most ${most} are shown. <code>gatewayctl ${command}</code> lists all.</p>`

/** Lists keys, the oldest first, each with a link that revokes it. */
export async function keys({ query, context }: Visit): Promise<Content> {
  const project = query.get('project')?.trim() ?? ''
  const found = await run<readonly ShownKey[]>(context, 'keys.list', {
    ...partOf(query),
    ...(project !== '' && { project }),
  })
  return {
    title: 'Keys',
    body: html`<form action="/ui/keys" method="get" class="row">
<label for="project">Only this project</label><input type="text" id="project" name="project" value="${project}" autocomplete="off">
<button>Show</button></form>
${table(
  'keys',
  'Keys',
  'Name, Key, Status, Project, Spent, Limits in USD, Rates, Made by, Created (UTC), Expires (UTC), Usage, Change',
  found.map(key => [
    key.name,
    html`<code>${key.id}</code>`,
    mark(key.status === 'active' ? 'good' : 'plain', key.status),
    key.project,
    usd(key.spent),
    showLimits(key.limits),
    showRates(key.rateLimits),
    key.createdBy,
    time(key.createdAt),
    key.expiresAt === null ? 'never' : time(key.expiresAt),
    html`<a href="${link('/ui/spend', { key: key.id })}" aria-label="Spend of ${key.name}">Spend</a>
<a href="${link('/ui/requests', { key: key.id })}" aria-label="Requests of ${key.name}">Requests</a>`,
    key.status === 'active' &&
      html`<a href="${link('/ui/confirm', { action: 'keys.revoke', id: key.id })}" aria-label="Revoke ${key.name}">Revoke</a>`,
  ]),
  'No keys.',
)}
${more('/ui/keys', found, { project })}
<p class="hint">Make a key with <code>gatewayctl keys create --project default --name NAME</code>: its secret is shown there, once.</p>`,
  }
}

/** Amounts of an organization's account, as decimal strings in USD. */
interface Credits {
  readonly balance: string
  readonly held: string
  readonly used: string
}

/** Lists organizations with what their accounts hold. */
export async function organizations({ query, context }: Visit): Promise<Content> {
  const found = await run<readonly OrganizationRecord[]>(context, 'orgs.list', partOf(query))
  const rows = []
  for (const one of found) {
    const { balance, held, used } = await run<Credits>(context, 'credits.show', { organization: one.id })
    rows.push([
      html`<a href="/ui/organizations/${encodeURIComponent(one.id)}">${one.name}</a>`,
      html`<code>${one.id}</code>`,
      one.account,
      one.account === 'prepaid' && Number(balance) <= 0 ? mark('bad', usd(balance)) : usd(balance),
      usd(held),
      usd(used),
      one.plan ?? 'none',
      one.retains ? 'yes' : 'no',
      time(one.createdAt),
    ])
  }
  return {
    title: 'Organizations',
    body: html`${table(
      'organizations',
      'Organizations',
      'Name, Id, Account, Balance, Held, Used, Plan, Retains data, Created (UTC)',
      rows,
    )}
${more('/ui/organizations', found)}`,
  }
}

const ENTRIES = 50

/** Shows one organization: credits, projects, members, payments. */
export async function oneOrganization({ id, context }: Visit): Promise<Content> {
  const organization = await organizationOf(id)
  const { balance, held, used } = await run<Credits>(context, 'credits.show', { organization: id })
  const projects = await run<readonly ProjectRecord[]>(context, 'projects.list', { organization: id, limit: RECORDS })
  const members = await run<readonly MemberRecord[]>(context, 'members.list', { organization: id, limit: RECORDS })
  const entries = await run<readonly (Omit<LedgerEntry, 'amount'> & { amount: string })[]>(context, 'credits.entries', {
    organization: id,
    limit: ENTRIES,
  })
  return {
    title: organization.name,
    body: html`<p><a href="/ui/organizations">All organizations</a></p>
${tiles([
  ['Balance', usd(balance), organization.account],
  ['Held', usd(held), 'by requests that run'],
  ['Used', usd(used), 'in all'],
])}
${facts([
  ['Id', organization.id],
  ['Plan', organization.plan ?? 'none'],
  ['Retains data', organization.retains ? 'yes' : 'no'],
  ['Created', time(organization.createdAt)],
])}
<p class="row"><a href="${link('/ui/spend', { organization: id, by: 'project' })}">Its spend</a>
<a href="${link('/ui/requests', { organization: id })}">Its requests</a></p>
<h2>Projects</h2>
${table(
  'projects',
  'Projects',
  'Name, Id, Provider keys, Status, Created (UTC), Keys',
  projects.map(one => [
    one.name,
    html`<code>${one.id}</code>`,
    one.mode,
    mark(one.status === 'active' ? 'good' : 'plain', one.status),
    time(one.createdAt),
    html`<a href="${link('/ui/keys', { project: one.id })}" aria-label="Keys of ${one.name}">Keys</a>`,
  ]),
)}
${cut(projects, RECORDS, `projects list --org ${organization.id}`)}
<h2>Members</h2>
${table(
  'members',
  'Members',
  'Address, Role, Projects, Since (UTC)',
  members.map(one => [
    one.email,
    one.role,
    one.projects === null ? 'all' : one.projects.join(', '),
    time(one.createdAt),
  ]),
)}
${cut(members, RECORDS, `members list --org ${organization.id}`)}
<h2>Payments and refunds</h2>
${table(
  'entries',
  'Payments and refunds',
  'Time (UTC), Kind, Amount, Reference, Note',
  entries.map(one => [time(one.at), one.kind, usd(one.amount), one.reference, one.note]),
)}
${cut(entries, ENTRIES, `credits entries --org ${organization.id}`)}`,
  }

  /** Lists come in parts, and an id is a place in them: the record behind the one before it. */
  async function organizationOf(wanted: string): Promise<OrganizationRecord> {
    await context.names.organization(wanted)
    for (let after: string | undefined; ; ) {
      const part = await run<readonly OrganizationRecord[]>(context, 'orgs.list', {
        limit: 500,
        ...(after && { after }),
      })
      const found = part.find(one => one.id === wanted || one.name === wanted)
      if (found) return found
      after = part.at(-1)?.id
      if (part.length < 500) throw errors.notFound(`There is no organization "${wanted}".`)
    }
  }
}
