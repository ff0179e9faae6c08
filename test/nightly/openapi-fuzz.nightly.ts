/** Schemathesis makes requests from the document of the API: no answer is a 5xx, or outside of what the document says. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import t from 'tap'
import { endpoints } from '../../src/endpoints/index.ts'
import { startGateway } from '../helpers/gateway.ts'
import { textOf } from '../helpers/sources.ts'
import { pythonClients } from './agents/install.ts'

const EXAMPLES = process.env.SCHEMATHESIS_EXAMPLES ?? '8'
const SEED = process.env.SCHEMATHESIS_SEED ?? '1'
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
]
/** Longest end of a report that a failure shows. */
const SHOWN = 20_000
const rpm = 1_000_000
const DEMO = ['providers.d/demo.yaml', 'config/models.d/demo.yaml']

const installed = await pythonClients(t, 'openapi', ['schemathesis'])
if (installed) {
  t.test('requests by the document have answers that it describes', { timeout: 3_600_000 }, async t => {
    const gateway = await startGateway(t, {
      providers: {},
      config: { endpoints: Object.fromEntries(endpoints.map(({ name }) => [name, { ratelimit: { rpm } }])) },
      // Examples of the document name the models of the demo.
      files: Object.fromEntries(DEMO.map(path => [path, textOf(path)])),
    })
    const child = spawn(
      join(dirname(installed.python), 'st'),
      [
        ...['run', `${gateway.url}/openapi.json`, '-H', `Authorization: Bearer ${gateway.key}`],
        ...['--checks', CHECKS.join(','), '--phases', 'examples,coverage,fuzzing', '-n', EXAMPLES, '--seed', SEED],
        ...['--continue-on-failure', '--suppress-health-check', 'all', '--request-timeout', '60', '--no-color'],
      ],
      { cwd: t.testdir(), env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'inherit'] },
    )
    let report = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (report = (report + text).slice(-SHOWN)))
    const [code] = (await once(child, 'close')) as [number | null]
    t.equal(code, 0, report)
  })
}
