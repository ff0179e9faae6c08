/** The newest agents of PyPI that speak the Responses API or Google's, over every chat wire. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { pythonClients } from './agents/install.ts'

const driver = fileURLToPath(new URL('agents/drive.py', import.meta.url))
const packages = [
  'openai',
  'openai-agents',
  'langchain',
  'langchain-openai',
  'pydantic-ai-slim[openai]',
  'google-genai',
]
const installed = await pythonClients(t, 'agents', packages)
if (installed) {
  const { play, start } = await import('./agents/loops.ts')
  play(
    [
      { client: 'openai', api: 'responses' },
      { client: 'openai-agents', api: 'responses' },
      { client: 'langchain', api: 'responses' },
      { client: 'pydantic-ai', prefix: 'openai', api: 'responses', drops: true },
      { client: 'pydantic-ai', prefix: 'openai-responses', api: 'responses', drops: true },
      { client: 'pydantic-ai', prefix: 'openai-chat', api: 'chat' },
      { client: 'google-genai', api: 'gemini' },
    ],
    start(installed.python, [driver], { PATH: process.env.PATH }),
  )
}
