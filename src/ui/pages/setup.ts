/** The lines that each client needs to use this gateway. */
import type { ListedModel } from '../../admin/commands/catalogue.ts'
import type { Status } from '../../admin/commands/status.ts'
import { type Html, html } from '../html.ts'
import { abilitiesOf, shellLines, type Tool, tools } from '../launch-tools.ts'
import { type Content, run, type Visit } from '../layout.ts'

/** Placeholder: a page shows no key. */
const KEY = 'mgw_YOUR_KEY'

/** Snippets by the name of the client. `url` has no trailing slash. */
const snippets = (url: string, model: string): Readonly<Record<string, string>> => ({
  curl: `curl ${url}/v1/chat/completions \\
  -H "Authorization: Bearer ${KEY}" -H "Content-Type: application/json" \\
  -d '${JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }).replaceAll("'", "'\\''")}'`,
  'Clients of the OpenAI API, by their environment': `export OPENAI_BASE_URL=${url}/v1
export OPENAI_API_KEY=${KEY}`,
  'OpenAI for Python': `from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(`${url}/v1`)}, api_key="${KEY}")
answer = client.chat.completions.create(
    model=${JSON.stringify(model)}, messages=[{"role": "user", "content": "Hello"}]
)`,
  'OpenAI for JavaScript': `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: ${JSON.stringify(`${url}/v1`)}, apiKey: '${KEY}' })
const answer = await client.chat.completions.create({
  model: ${JSON.stringify(model)},
  messages: [{ role: 'user', content: 'Hello' }],
})`,
  'Anthropic for Python': `from anthropic import Anthropic

client = Anthropic(base_url=${JSON.stringify(url)}, api_key="${KEY}")
answer = client.messages.create(
    model=${JSON.stringify(model)}, max_tokens=1024, messages=[{"role": "user", "content": "Hello"}]
)`,
  'Anthropic for JavaScript': `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: ${JSON.stringify(url)}, apiKey: '${KEY}' })
const answer = await client.messages.create({
  model: ${JSON.stringify(model)},
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello' }],
})`,
  'Google Gen AI for Python': `from google import genai

client = genai.Client(api_key="${KEY}", http_options={"base_url": ${JSON.stringify(url)}})
answer = client.models.generate_content(model=${JSON.stringify(model)}, contents="Hello")`,
  'Google Gen AI for JavaScript': `import { GoogleGenAI } from '@google/genai'

const ai = new GoogleGenAI({ apiKey: '${KEY}', httpOptions: { baseUrl: ${JSON.stringify(url)} } })
const answer = await ai.models.generateContent({ model: ${JSON.stringify(model)}, contents: 'Hello' })`,
  'AI SDK 6': `import { createGateway, generateText } from 'ai'

const gateway = createGateway({ baseURL: ${JSON.stringify(`${url}/v3/ai`)}, apiKey: '${KEY}' })
const { text } = await generateText({ model: gateway(${JSON.stringify(model)}), prompt: 'Hello' })`,
  'LangChain for Python': `from langchain_openai import ChatOpenAI

model = ChatOpenAI(base_url=${JSON.stringify(`${url}/v1`)}, api_key="${KEY}", model=${JSON.stringify(model)})`,
  'MCP in Claude Code and Codex': `claude mcp add --transport http gateway ${url}/mcp && claude mcp login gateway
codex mcp add gateway --url ${url}/mcp`,
})

const section = (name: string, lines: string): Html => html`<h3>${name}</h3>
<pre tabindex="0"><code>${lines}</code></pre>`

/** Shows a snippet for each client, with this gateway's address and the chosen model. */
export async function setup({ query, context }: Visit): Promise<Content> {
  const { listen, publicUrl } = await run<Status>(context, 'status')
  const url = (publicUrl ?? `http://${listen.replace(/^(?:0\.0\.0\.0|\[::\]):/, '127.0.0.1:')}`).replace(/\/$/, '')
  const chosen = query.get('model')?.trim() || undefined
  const models = await run<readonly ListedModel[]>(context, 'models.list')
  const launched = Object.entries<Tool>(tools).map(([name, tool]): [string, string] => {
    const model = chosen ?? tool.model
    return [name, shellLines(tool.launch({ url, key: KEY, model, abilities: abilitiesOf(model, models) }))]
  })
  return {
    title: 'Set-up',
    body: html`<p>The address of this gateway is <code>${url}</code>.
${publicUrl === undefined && html`Set <code>server.public_url</code> where clients reach it by another one.`}
Make a key for each client: <code>gatewayctl keys create --project default --name NAME</code></p>
<form action="/ui/setup" method="get" class="row"><label for="model">Model</label>
<input type="text" id="model" name="model" value="${chosen ?? ''}" placeholder="auto" autocomplete="off" spellcheck="false"><button>Show</button></form>
<h2>Agents on the command line</h2>
<p class="hint"><code>gatewayctl launch NAME</code> starts each of them with these settings and a key of its own.</p>
${launched.map(([name, lines]) => section(name, lines))}
<h2>Libraries</h2>
${Object.entries(snippets(url, chosen ?? 'auto')).map(([name, lines]) => section(name, lines))}`,
  }
}
