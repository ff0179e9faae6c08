/**
 * Installs the Python clients of `requirements.txt` into `.venv`, unless they are there, and prints the interpreter that
 * has them. Without `python3` or its registry it prints why to stderr and ends with 1.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../../.venv', import.meta.url))
const requirements = fileURLToPath(new URL('requirements.txt', import.meta.url))
/** Written last, so that an installation that was cut short is made again. */
const installed = join(folder, 'requirements.txt')
const python = join(folder, 'bin', 'python')

const steps = [
  ['python3', '-m', 'venv', '--clear', folder],
  // Only the modules that the imports below need are compiled, which takes half the time.
  [python, '-m', 'pip', 'install', '--quiet', '--no-input', '--no-compile', '--retries', '1', '-r', requirements],
  [python, '-c', 'import openai, anthropic, litellm, google.genai'],
]

function install() {
  const wanted = readFileSync(requirements, 'utf8')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return
  const env = { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True', PYTHONDONTWRITEBYTECODE: '' }
  for (const [command, ...args] of steps) {
    const { status, error, stdout, stderr } = spawnSync(command, args, { env, encoding: 'utf8' })
    if (status === 0) continue
    const said = `${stdout ?? ''}\n${stderr ?? ''}`.trim().split('\n').at(-1)
    return `${[command, ...args.slice(0, 3)].join(' ')}: ${error?.message ?? said}`
  }
  writeFileSync(installed, wanted)
}

const reason = install()
if (reason) {
  console.error(reason)
  process.exitCode = 1
} else {
  console.log(python)
}
