/** Which tests there are, and which of them share a process. */
import { readdirSync } from 'node:fs'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const test = fileURLToPath(new URL('.', import.meta.url))

/** Files and folders that need the built gateway, other programs or the machine. */
const WHOLE = [
  'e2e',
  'cli',
  'workers',
  'bench',
  'helpers',
  'nightly',
  'validation',
  'stores/scale.test.ts',
  'package.test.ts',
]
/** Unit tests that change what all of a process shares, or take as long as the rest of their folder. */
const ALONE = ['stores/workers.test.ts', 'policy/stores.test.ts', 'stores/stores.test.ts']

/**
 * Files that share a process, by the name of its entry, which begins with their folder; those of wires, plain and policy
 * share a gateway too. A file that measures its process, or changes what all of it shares, has a process of its own.
 */
export const families = {
  'e2e-wires': ['accounts', 'agents', 'matrix', 'prefixes', 'requests', 'thinking'],
  'e2e-plain': ['edge', 'gatewayctl', 'hostile', 'limits', 'malformed', 'sessions', 'tenancy'],
  'e2e-messages': ['commit-point', 'cross-wire-failover', 'empty-answers', 'held-back', 'messages', 'messages-headers'],
  'e2e-policy': ['policy', 'policy-tenants'],
  'e2e-money': ['credit', 'isolation', 'odd-reports', 'shedding', 'spending-mix'],
  'e2e-responses': ['codex', 'responses', 'responses-state'],
  'e2e-upstream': ['clients', 'embeddings', 'failover', 'images', 'request-routing', 'streams', 'upstream-edges'],
  'e2e-media': [
    ...['audio-addresses', 'image-generation', 'image-wires', 'media-errors', 'media-matrix'],
    ...['small-endpoints', 'small-operations', 'speech', 'transcriptions'],
  ],
  'e2e-videos': ['videos', 'video-results'],
  'e2e-oauth': ['oauth', 'oauth-clients', 'oauth-documents'],
  'e2e-mcp': ['mcp', 'mcp-stream', 'mcp-usage'],
  'e2e-ai-sdk': ['ai-sdk', 'ai-sdk-clients'],
  'e2e-browser': ['oauth-browser', 'video-browser'],
  'e2e-local': ['local-engines', 'rerank', 'route-table', 'slow-and-partial'],
  'e2e-virtual': ['virtual-endpoints', 'virtual-failover', 'virtual-limits', 'virtual-models'],
  'e2e-models': ['litellm-compat', 'mirrors', 'model-patterns', 'presets', 'unavailable-models'],
  'e2e-limits': ['end-users', 'limits-at-endpoints', 'money-limits', 'rate-limits'],
  'e2e-access': ['access', 'content', 'credentials', 'egress', 'identities', 'jwt', 'secrets'],
  // Each has a PostgreSQL server, and half of the time of both.
  'stores-contracts': ['postgres-money', 'postgres-stores'],
  'stores-postgres': ['money-model', 'postgres', 'postgres-copy', 'postgres-jobs', 'postgres-ledger', 'postgres-storm'],
  cli: ['accounts', 'commands', 'complete', 'doctor', 'models-sync', 'oauth', 'requests'],
}
const familyOf = new Map(
  Object.entries(families).flatMap(([name, files]) =>
    files.map(file => [`${name.split('-', 1)[0]}/${file}.test.ts`, name]),
  ),
)

const isIn = (path, name) => path === name || path.startsWith(`${name}/`)
const isWhole = path => WHOLE.some(name => isIn(path, name))

/** All of `test`, by paths from there. */
const all = readdirSync(test, { recursive: true, encoding: 'utf8' })
  .map(path => path.split(sep).join('/'))
  .sort()
const files = all.filter(path => path.endsWith('.test.ts'))

/** @param {string | undefined} kind `unit`, `e2e`, or all where it is left out */
export const filesOf = kind => files.filter(path => kind === undefined || isWhole(path) === (kind === 'e2e'))

/**
 * Files that get a process of their own, and those that share one, by the name of its entry.
 * @param {readonly string[]} paths
 */
export function grouped(paths) {
  const alone = []
  const together = {}
  for (const path of paths) {
    const family = familyOf.get(path)
    if (!family && (isWhole(path) || ALONE.includes(path))) alone.push(path)
    else {
      const name = family ?? (path.includes('/') ? path.split('/', 1)[0] : 'static')
      together[name] ??= []
      together[name].push(path)
    }
  }
  return { alone, together }
}

/** What a command line names: files or folders, from the root of the project. Throws for a path without tests. */
export const named = paths =>
  paths.flatMap(path => {
    const inTest = path.replace(/^(\.\/)?test(\/|$)/, '').replace(/\/$/, '')
    const found = inTest.endsWith('.ts')
      ? all.filter(file => file === inTest)
      : files.filter(file => !inTest || isIn(file, inTest))
    if (found.length === 0) throw new Error(`There are no tests in ${path}: name files or folders below test/.`)
    return found
  })
