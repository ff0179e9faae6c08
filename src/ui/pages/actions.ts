/** Changes, each what one command does, after a confirmation. */
import type { AdminContext } from '../../admin/context.ts'
import { routes } from '../../admin/routes.ts'
import type { Actor } from '../../core/ports.ts'
import { errors } from '../../lib/error.ts'
import { type Html, html, type Value } from '../html.ts'
import { actorOf, type Content, csrfField, facts, run, type Visit } from '../layout.ts'

interface Action {
  readonly title: string
  /** Says what it does, before it does it. */
  readonly warning: string
  readonly button: string
  /** Fields that name what it changes. */
  readonly fields: readonly string[]
  /** Names the command that does so in a shell. */
  command(values: Readonly<Record<string, string>>): string
  /** Facts by which people recognize what is changed. Throws 404 for what does not exist. */
  about?(
    values: Readonly<Record<string, string>>,
    context: AdminContext,
  ): Promise<readonly (readonly [string, Value])[]>
  /** Resolves with the result for people. */
  perform(values: Readonly<Record<string, string>>, context: AdminContext, actor: Actor): Promise<Html>
  /** Page to return to. */
  readonly back: string
}

async function keyFacts({ id }: Readonly<Record<string, string>>, { accounts }: AdminContext) {
  const { name, project, organization, status } = await accounts.showKey(id!)
  return [
    ['Name', name],
    ['Id', id],
    ['Project', project],
    ['Organization', organization],
    ['Status', status],
  ] as const
}

/** Runs a route of the admin listener, as `gatewayctl` does. */
const routed = async <Result>(path: string, context: AdminContext): Promise<Result> =>
  JSON.parse((await routes[path]!.answer(context)).body) as Result

const actions: Readonly<Record<string, Action>> = {
  'keys.revoke': {
    title: 'Revoke a key',
    warning: 'Requests with this key are refused from now on, and its running streams end. This cannot be undone.',
    button: 'Revoke the key',
    fields: ['id'],
    command: ({ id }) => `gatewayctl keys revoke ${id}`,
    about: keyFacts,
    async perform({ id }, context, actor) {
      const { name } = await run<{ name: string }>(context, 'keys.revoke', { id }, actor)
      return html`The key ${name} is revoked.`
    },
    back: '/ui/keys',
  },
  'jobs.retry-callback': {
    title: 'Deliver a callback again',
    warning: 'The callback is sent to its address now.',
    button: 'Deliver it',
    fields: ['event'],
    command: ({ event }) => `gatewayctl jobs retry-callback ${event}`,
    about: async ({ event }) => [['Event', event]],
    async perform({ event }, context, actor) {
      await run(context, 'jobs.retry-callback', { event }, actor)
      return html`The callback ${event} is on its way.`
    },
    back: '/ui/jobs',
  },
  reload: {
    title: 'Reload the configuration',
    warning: 'The files are read again. If they are refused, the running configuration stays.',
    button: 'Reload',
    fields: [],
    command: () => 'gatewayctl reload',
    async perform(_, context) {
      const { changed, version, restartNeeded, warnings } = await routed<Awaited<ReturnType<AdminContext['reload']>>>(
        '/reload',
        context,
      )
      return html`The configuration ${version} is ${changed ? 'in effect now' : 'unchanged'}.
${restartNeeded.map(one => html`<br>A restart is needed for: ${one}`)}
${warnings.map(one => html`<br>Warning: ${one}`)}`
    },
    back: '/ui/config',
  },
  drain: {
    title: 'Drain this gateway',
    warning: 'It takes no new requests, lets the running ones end, and stops. This page stops with it.',
    button: 'Drain',
    fields: [],
    command: () => 'gatewayctl drain',
    async perform(_, context) {
      const { inFlight } = await routed<{ inFlight: number }>('/drain', context)
      return html`The gateway drains: ${inFlight} requests are running.`
    },
    back: '/ui',
  },
}

/** The action that a query or a form names, with its values. Throws 404 and 400. */
function named(query: URLSearchParams): { name: string; action: Action; values: Record<string, string> } {
  const name = query.get('action') ?? ''
  if (!Object.hasOwn(actions, name)) throw errors.notFound('There is no such change.')
  const action = actions[name]!
  const values: Record<string, string> = {}
  for (const field of action.fields) {
    const value = query.get(field)
    if (!value) throw errors.invalidParameters(`"${field}" is missing.`, field)
    values[field] = value
  }
  return { name, action, values }
}

/** Asks before a change. */
export async function confirm({ query, context, session }: Visit): Promise<Content> {
  const { name, action, values } = named(query)
  return {
    title: action.title,
    body: html`${action.about && facts(await action.about(values, context))}
<p>${action.warning}</p>
<p class="hint">In a shell: <code>${action.command(values)}</code></p>
<form method="post" action="/ui/confirm">${csrfField(session)}
<input type="hidden" name="action" value="${name}">
${action.fields.map(field => html`<input type="hidden" name="${field}" value="${values[field]}">`)}
<p class="row"><button class="danger">${action.button}</button> <a href="${action.back}">Cancel</a></p></form>`,
  }
}

/** Makes the change that was confirmed. */
export async function perform({ query, context, session }: Visit): Promise<Content> {
  const { action, values } = named(query)
  const result = await action.perform(values, context, actorOf(session))
  return {
    title: action.title,
    body: html`<p role="status" class="note">${result}</p>
<p><a href="${action.back}">Go on</a></p>`,
  }
}
