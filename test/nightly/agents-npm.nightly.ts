/** The newest agents of npm that speak the Responses API or Google's, over every chat wire. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { npmClients } from './agents/install.ts'

const installed = await npmClients(t, 'agents', ['openai', '@openai/agents', 'zod', '@google/genai'])
if (installed) {
  const { play, start } = await import('./agents/loops.ts')
  const driver = join(installed.folder, 'drive.mjs')
  await copyFile(fileURLToPath(new URL('agents/drive.mjs', import.meta.url)), driver)
  const env = { PATH: installed.path, HOME: installed.folder }
  play(
    [
      { client: 'openai', api: 'responses' },
      { client: '@openai/agents', api: 'responses' },
      { client: '@google/genai', api: 'gemini' },
    ],
    start('node', [driver], env),
  )
}
