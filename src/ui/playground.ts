/** The playground: a chat by a request to the public listener, whose answer is passed on as it comes. */
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { ListedModel } from '../admin/commands/catalogue.ts'
import type { Status } from '../admin/commands/status.ts'
import type { OperatorSession } from '../core/ports.ts'
import { jsonIn } from '../json/json.ts'
import { errors } from '../lib/error.ts'
import { html } from './html.ts'
import { actorOf, type Content, csrfField, run, type Visit } from './layout.ts'

const CHAT = '/v1/chat/completions'
const SOURCE = 'ui'
const MAX_SUGGESTED_MODELS = 500

/** Shows the form; `static/playground.js` sends it. */
export async function playground({ query, session, context }: Visit): Promise<Content> {
  const listed = await run<readonly ListedModel[]>(context, 'models.list')
  const models = listed
    .filter(({ live }) => live)
    .slice(0, MAX_SUGGESTED_MODELS)
    .map(({ id }) => html`<option value="${id}"></option>`)
  return {
    title: 'Playground',
    body: html`<noscript><p role="alert">The playground needs JavaScript. In a shell: <code>gatewayctl chat --stream "Hello"</code></p></noscript>
<form id="chat" method="post" action="/ui/playground">${csrfField(session)}
<div class="fields">
<div><label for="model">Model</label><input type="text" id="model" name="model" value="${query.get('model') ?? 'auto'}" required autocomplete="off" spellcheck="false" list="models"><datalist id="models">${models}</datalist></div>
<div><label for="project">Project that pays</label><input type="text" id="project" name="project" value="${query.get('project') ?? 'default'}" required autocomplete="off" spellcheck="false"></div>
</div>
<details><summary>System prompt and parameters</summary>
<p><label for="system">System prompt</label><textarea id="system" name="system"></textarea></p>
<p><label for="parameters">Further members of the request, as JSON</label><textarea id="parameters" name="parameters" placeholder="{&quot;temperature&quot;: 0.2, &quot;max_tokens&quot;: 500}" spellcheck="false"></textarea></p>
</details>
<div id="turns" role="log" aria-label="Conversation" tabindex="0"></div>
<p><label for="message">Message</label><textarea id="message" name="message" required aria-describedby="message-hint"></textarea>
<span class="hint" id="message-hint">Control and Enter send it.</span></p>
<p class="row"><button id="send">Send</button>
<button type="button" id="stop" class="quiet" disabled>Stop</button>
<button type="button" id="anew" class="quiet">New conversation</button></p>
</form>
<p id="facts" role="status"></p>
<details id="raw" open><summary>Events as they came</summary>
<pre id="events" tabindex="0" role="region" aria-label="Events as they came"></pre></details>`,
    scripts: ['playground.js'],
  }
}

/** Fields that a person writes as JSON. Throws 400 for anything but an object. */
function parsed(text: string, field: string): object {
  const value = jsonIn(text)
  if (typeof value === 'object' && value !== null) return value
  throw errors.invalidParameters(`Field "${field}" must be JSON.`, field)
}

/** The request of the form; `parameters` are further members of its body. */
function bodyOf(form: URLSearchParams): string {
  const parameters = form.get('parameters')?.trim()
  const messages = parsed(form.get('messages') ?? '', 'messages')
  const more = parameters ? parsed(parameters, 'parameters') : {}
  return JSON.stringify({ stream: true, ...more, model: form.get('model')?.trim(), messages })
}

/** Address of the public listener from this host. */
function addressOf({ listen }: Status): URL {
  const url = new URL(`http://${listen}`)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return url
}

/**
 * Sends the chat with a session of its project, which the browser never sees, and passes on status, type and body. Ends
 * the request when the browser leaves.
 */
export async function chat(visit: Visit, response: ServerResponse): Promise<void> {
  const { query: form, context, session } = visit
  const actor = actorOf(session)
  const body = bodyOf(form)
  const project = form.get('project')?.trim() || 'default'
  const url = new URL(CHAT, addressOf(await run<Status>(context, 'status')))
  const { id, key } = await run<OperatorSession>(context, 'sessions.begin', { project }, actor)
  let answer: IncomingMessage
  try {
    answer = await send(url, key, body, response)
  } finally {
    await run(context, 'sessions.end', { id }, actor)
  }
  response.writeHead(answer.statusCode!, {
    'content-type': answer.headers['content-type'] ?? 'application/json',
    'cache-control': 'no-store',
  })
  // Either side may leave in the middle: there is nothing more to send then.
  await pipeline(answer, response).catch(() => response.destroy())
}

/** Resolves with the head of the answer. Rejects with 503 when the listener cannot be reached. */
function send(url: URL, key: string, body: string, response: ServerResponse): Promise<IncomingMessage> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-source': SOURCE,
  }
  return new Promise((resolve, reject) => {
    const call = httpRequest(url, { method: 'POST', headers, agent: false })
    call.once('response', resolve)
    // Also those that come once the answer has begun.
    call.on('error', () => reject(errors.shuttingDown()))
    response.once('close', () => call.destroy())
    call.end(body)
  })
}
