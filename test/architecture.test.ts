/** The shape of the code: who imports whom, how long files are, and where names may stand. */
import { readdirSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'
import t from 'tap'
import { root, sourceFiles, textOf } from './helpers/sources.ts'

/** Folders that all others may import; they know nothing of a request. */
const below = ['lib', 'json', 'media', 'limits', 'secrets']

/** Folders of `src` that each folder may import besides itself and those below. `app` and `cli` put everything together. */
const rules: Record<string, readonly string[]> = {
  lib: [],
  json: ['lib'],
  media: ['lib'],
  limits: ['lib'],
  secrets: ['lib', 'json'],
  core: [],
  wire: ['core'],
  metering: ['core'],
  policy: ['core'],
  validation: ['core'],
  codecs: ['core', 'operations', 'validation', 'wire'],
  stores: ['core', 'policy'],
  operations: ['core', 'metering', 'wire'],
  egress: ['core'],
  upstream: ['core', 'egress', 'metering', 'wire'],
  routing: ['core', 'policy', 'wire'],
  config: ['core', 'validation'],
  references: ['core', 'config', 'egress', 'upstream'],
  http: ['core', 'metering'],
  alerts: ['core'],
  admin: ['core', 'validation'],
  telemetry: ['core'],
  ui: ['core', 'admin', 'policy'],
  demo: ['core'],
  workers: ['core', 'stores'],
  filters: ['core', 'metering', 'policy', 'routing', 'wire'],
  jobs: ['core', 'wire'],
  mcp: ['core', 'codecs', 'metering'],
  oauth: ['core', 'codecs', 'mcp'],
  realtime: ['core', 'metering', 'operations', 'policy', 'wire'],
  openapi: ['core', 'operations', 'oauth'],
  compat: ['core', 'endpoints', 'policy', 'routing', 'codecs'],
  endpoints: ['core', 'codecs', 'operations', 'policy', 'routing', 'mcp', 'oauth', 'realtime', 'openapi'],
}

const folderOf = (file: string): string => {
  const parts = file.split('/')
  return parts[0] === 'src' && parts.length > 2 ? parts[1]! : parts[0]!
}

function importsOf(file: string): string[] {
  const specifiers = textOf(file).matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)
  return [...specifiers].map(match => match[1]!)
}

t.test('every folder of src has an import rule or composes', async t => {
  const folders = new Set(sourceFiles.filter(file => file.startsWith('src/')).map(folderOf))
  t.strictSame([...folders].filter(folder => !(folder in rules)).sort(), ['app', 'cli', 'src'])
})

t.test('directly in src stand the entry points and what plugins import, and nothing else', async t => {
  t.strictSame(sourceFiles.filter(file => /^src\/[^/]+$/.test(file)).sort(), [
    'src/cli.ts',
    'src/main.ts',
    'src/plugin.ts',
  ])
})

/** What `wrong` says of the imports of files that pass `of`, one line each. */
const violations = (of: (folder: string) => boolean, wrong: (specifier: string, file: string) => boolean): string[] =>
  sourceFiles
    .filter(file => of(folderOf(file)))
    .flatMap(file =>
      importsOf(file)
        .filter(specifier => wrong(specifier, file))
        .map(specifier => `${file} imports ${specifier}`),
    )

const isLocal = (specifier: string): boolean => specifier.startsWith('.')
const pathOf = (specifier: string, file: string): string => join(dirname(file), specifier)

t.test('the rules see imports', async t => {
  t.ok(violations(() => true, isLocal).length > 1000)
})

t.test('files import only what their folder may import', async t => {
  const isForbidden = (specifier: string, file: string) => {
    const path = pathOf(specifier, file)
    const folder = folderOf(file)
    const allowed = [folder, ...(below.includes(folder) ? [] : below), ...rules[folder]!]
    return !path.startsWith('src/') || !allowed.includes(folderOf(path))
  }
  t.strictSame(
    violations(
      folder => folder in rules,
      (specifier, file) => isLocal(specifier) && isForbidden(specifier, file),
    ),
    [],
  )
})

/** An exchange knows its endpoint and snapshot, whose codecs and filters take an exchange: one idea in six files. */
const exchangeFiles = ['chain', 'codec', 'endpoint', 'exchange', 'filter', 'snapshot'].map(
  name => `src/core/${name}.ts`,
)

t.test('imports have no circle, also not one of types, but for the contracts of an exchange', async t => {
  const isOpen = (file: string) => !exchangeFiles.includes(file)
  const left = new Map(
    sourceFiles.filter(isOpen).map(file => {
      const paths = importsOf(file)
        .filter(isLocal)
        .map(specifier => pathOf(specifier, file))
      return [file, new Set(paths.filter(path => isOpen(path) && path !== file))] as const
    }),
  )
  // Files that import no remaining file are taken away, until those of circles and what imports them remain.
  for (let size = -1; size !== left.size; ) {
    size = left.size
    for (const [file, paths] of left) if (![...paths].some(path => left.has(path))) left.delete(file)
  }
  t.strictSame([...left.keys()], [])
})

t.test('every source file is part of what the build bundles; what only tests import stands in test', async t => {
  const list = textOf('build.mjs').match(/Object\.fromEntries\(\s*\[([^\]]+)\]/)?.[1] ?? ''
  const bundled = new Set([...list.matchAll(/'([^']+)'/g)].map(([, name]) => `src/${name}.ts`))
  t.ok(bundled.has('src/main.ts'), 'the pattern finds entry points')
  for (const file of bundled) {
    for (const specifier of importsOf(file).filter(isLocal)) bundled.add(pathOf(specifier, file))
  }
  t.strictSame(
    sourceFiles.filter(file => !bundled.has(file)),
    [],
  )
})

t.test('routing reads queries and facts of attempts, and no exchange', async t => {
  const named = sourceFiles.filter(file => folderOf(file) === 'routing' && /\bExchange\b/.test(textOf(file)))
  t.strictSame(named, [])
})

/** The filters that a file of `src/filters` is part of: itself, if the list of filters names it, else its importers. */
function filtersOf(file: string): string[] {
  const isImportedBy = (other: string) => importsOf(other).some(specifier => pathOf(specifier, other) === file)
  if (isImportedBy('src/filters/index.ts')) return [file]
  return sourceFiles.filter(other => folderOf(other) === 'filters' && isImportedBy(other)).flatMap(filtersOf)
}

/** Files and filters of `src` that read or write a member of an exchange; the kernel stands for itself. */
function usersOf(member: string): Set<string> {
  const use = new RegExp(
    `\\b(?:ex|this|#ex)\\.(?:\\w+\\.)?${member}\\b|\\{[^=;]*\\b${member}\\b[^=;]*\\}(?:: Exchange\\b| = (?:this\\.#)?ex\\b)`,
  )
  const users = sourceFiles.filter(file => {
    if (!file.startsWith('src/')) return false
    const text = textOf(file)
    return file === 'src/core/exchange.ts' || /\bExchange\b|\bex\./.test(text) ? use.test(text) : false
  })
  return new Set(users.flatMap(file => (folderOf(file) === 'filters' ? filtersOf(file) : [file])))
}

/** The class of an exchange, and those of its parts that filters fill in. */
const exchangeParts: Readonly<Record<string, string>> = {
  Exchange: 'src/core/exchange.ts',
  HttpRequest: 'src/core/http-request.ts',
  Caller: 'src/core/policy.ts',
  Answer: 'src/core/answer.ts',
}

/** The text of a class of the kernel, from its head to its end. */
function classBody(name: string): string {
  const [, rest] = textOf(exchangeParts[name]!).split(`export class ${name} {`)
  return rest!.slice(0, rest!.indexOf('\n}\n'))
}

t.test('an exchange has at most 40 members', async t => {
  const members = new Set(
    [...classBody('Exchange').matchAll(/^ {2}(?:readonly |get |async )?(#?\w+)(?:\??:| =|\(|<)/gm)].map(
      ([, name]) => name!,
    ),
  )
  members.delete('constructor')
  t.ok(members.has('#request') && members.has('streaming') && members.has('step'), 'the pattern finds members')
  t.ok(members.size <= 40, `an exchange has ${members.size} members`)
})

t.test('an exchange holds no field that one filter alone uses', async t => {
  const members = Object.keys(exchangeParts).flatMap(name =>
    [...classBody(name).matchAll(/^ {2}(?:readonly )?(\w+)(?::| =)/gm)].map(([, member]) => member!),
  )
  t.ok(members.length > 20, 'the pattern finds members')
  const single = members.filter(member => {
    const users = [...usersOf(member)]
    return users.length === 0 || (users.length === 1 && folderOf(users[0]!) === 'filters')
  })
  t.strictSame(single, [])
})

t.test('plugins import of src what plugins of operators may', async t => {
  const isInside = (path: string) => path.startsWith('plugins/') || path === 'src/plugin.ts'
  t.strictSame(
    violations(
      folder => folder === 'plugins',
      (specifier, file) => isLocal(specifier) && !isInside(pathOf(specifier, file)),
    ),
    [],
  )
})

t.test('no wire imports another wire; what they have in common is shared', async t => {
  const wireOf = (path: string) => path.split('/')[1]!.replace('.ts', '')
  const crosses = (path: string, file: string) =>
    path.startsWith('plugins/') && ![wireOf(file), 'shared'].includes(wireOf(path))
  t.strictSame(
    violations(
      folder => folder === 'plugins',
      (specifier, file) => isLocal(specifier) && crosses(pathOf(specifier, file), file),
    ),
    [],
  )
})

t.test('stores are opened by stores/open.ts alone, so that nothing else depends on what keeps them', async t => {
  const isImplementation = (path: string) => /^src\/stores\/(?:sqlite|sql|postgres|rules)\//.test(path)
  t.ok(
    importsOf('src/stores/open.ts').some(specifier => isImplementation(pathOf(specifier, 'src/stores/open.ts'))),
    'the pattern finds them',
  )
  t.strictSame(
    violations(
      folder => folder !== 'stores',
      (specifier, file) => isLocal(specifier) && isImplementation(pathOf(specifier, file)),
    ),
    [],
  )
})

t.test('SQL stands in stores alone', async t => {
  const sql = /\b(?:SELECT\s.+\sFROM|INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b/s
  const holdsSql = (file: string) => [...textOf(file).matchAll(/`[^`]*`|'[^'\n]*'/g)].some(([text]) => sql.test(text))
  t.ok(holdsSql('src/stores/sqlite/ledger.ts'), 'the pattern finds SQL')
  t.strictSame(
    sourceFiles.filter(file => folderOf(file) !== 'stores' && holdsSql(file)),
    [],
  )
})

t.test(
  'lib, json, limits, secrets, core and plugins import one package, which reads addresses, and of node buffers and hashes',
  async t => {
    const allowed = ['node:buffer', 'node:crypto', 'ipaddr.js']
    t.strictSame(
      violations(
        folder => ['lib', 'json', 'limits', 'secrets', 'core', 'plugins'].includes(folder),
        specifier => !isLocal(specifier) && !allowed.includes(specifier),
      ),
      [],
    )
  },
)

t.test('only http, egress, upstream, admin, ui, demo and cli touch sockets', async t => {
  const sockets = new Set(['node:http', 'node:https', 'node:net', 'node:tls', 'node:dns', 'undici'])
  t.strictSame(
    violations(
      folder => !['http', 'egress', 'upstream', 'admin', 'ui', 'demo', 'cli'].includes(folder),
      specifier => sockets.has(specifier),
    ),
    [],
  )
})

t.test('every client of undici connects by a connector that survives paused answers', async t => {
  const making = sourceFiles.filter(file => {
    const isOfUndici = /\bnew (?:Agent|Client|Pool)\(/.test(textOf(file)) && importsOf(file).includes('undici')
    // Which connects as it is made to.
    return (isOfUndici && !file.endsWith('/single-client.ts')) || /\bnew SingleClient\(/.test(textOf(file))
  })
  t.ok(making.length >= 3)
  const wrapped = /\b(?:plainConnector|guardedConnector|socketConnector)\(/
  t.strictSame(
    making.filter(file => !wrapped.test(textOf(file))),
    [],
  )
})

t.test('imports of node name it', async t => {
  const bare = new Set(builtinModules)
  t.strictSame(
    violations(
      () => true,
      specifier => bare.has(specifier),
    ),
    [],
  )
})

t.test('no file is longer than 400 lines, and the median is about 90', async t => {
  const lengths = sourceFiles
    .map(file => ({ file, lines: textOf(file).split('\n').length }))
    .sort((a, b) => a.lines - b.lines)
  t.strictSame(
    lengths.filter(({ lines }) => lines > 400),
    [],
  )
  t.ok(lengths[Math.floor(lengths.length / 2)]!.lines <= 100)
})

/** Short files with one importer that stay, and why they stand apart. */
const apart: Readonly<Record<string, string>> = {
  'plugins/openai-responses/usage.ts': 'the decoder would have more than 300 lines',
  'src/cli/start-tool.ts': 'the one file that may start another program',
  'src/codecs/ai-sdk.ts': 'a client wire has a codec file, whichever endpoint serves it',
  'src/codecs/openai-responses.ts': 'a client wire has a codec file, whichever endpoint serves it',
  'src/http/chunked.ts': 'the sink would have more than 300 lines',
}

t.test('a file under 40 lines has two importers, unless it is an index or src/app composes it', async t => {
  const importers = new Map<string, string[]>()
  for (const file of sourceFiles) {
    for (const path of new Set(
      importsOf(file)
        .filter(isLocal)
        .map(specifier => pathOf(specifier, file)),
    )) {
      importers.set(path, [...(importers.get(path) ?? []), file])
    }
  }
  // These folders still have such files.
  const undivided = ['core']
  const composes = /^src\/(?:app\/|plugin\.ts$)/
  const short = sourceFiles.filter(file => {
    const [importer, ...others] = importers.get(file) ?? []
    const isShort = textOf(file).split('\n').length <= 40 && importer !== undefined && others.length === 0
    return isShort && !composes.test(importer) && !file.endsWith('/index.ts') && !undivided.includes(folderOf(file))
  })
  t.strictSame(short.sort(), Object.keys(apart).sort())
})

t.test('the files of a translator are shorter than 300 lines', async t => {
  t.strictSame(
    sourceFiles.filter(file => folderOf(file) === 'plugins' && textOf(file).split('\n').length > 300),
    [],
  )
})

t.test('validators compile the schemas of this repository; no other module can compile one of a client', async t => {
  const validators = sourceFiles.filter(file => importsOf(file).some(specifier => /^ajv\b/.test(specifier)))
  t.strictSame(validators.sort(), ['src/app/prebuild.ts', 'src/validation/ajv.ts', 'src/validation/compile.ts'])
})

t.test('every file says first what it is for', async t => {
  t.strictSame(
    sourceFiles.filter(file => !/^(#!.*\n)?\/\*\*/.test(textOf(file))),
    [],
  )
})

t.test('nothing between client and provider wire names a vendor', async t => {
  const vendors = readdirSync(join(root, 'providers.d'))
    .map(name => name.replace('.yaml', ''))
    .filter(name => name !== 'demo')
  const folders = [
    'lib',
    'json',
    'limits',
    'secrets',
    'core',
    'policy',
    'metering',
    'wire',
    'filters',
    'routing',
    'egress',
    'upstream',
    'http',
    'config',
    'stores',
    'admin',
    'telemetry',
    'endpoints',
  ]
  const named = sourceFiles
    .filter(file => folders.includes(folderOf(file)))
    .flatMap(file => {
      const code = textOf(file).replace(/\/\*\*[\s\S]*?\*\/|\/\/.*|'\.\.\/[^']*'/g, '')
      return vendors
        .filter(vendor => new RegExp(`['"\`/ ]${vendor}['"\`/ ]`, 'i').test(code))
        .map(vendor => `${file} names ${vendor}`)
    })
  t.strictSame(named, [])
})

/** Lines that a folder may have. A commit that raises a number says why. */
const lineBudgets: Readonly<Record<string, number>> = {
  admin: 3011,
  alerts: 449,
  app: 2977,
  cli: 6202,
  codecs: 10_784,
  compat: 744,
  config: 5628,
  core: 6342,
  demo: 195,
  egress: 1193,
  endpoints: 2066,
  filters: 6131,
  http: 2525,
  jobs: 1764,
  json: 989,
  lib: 1471,
  limits: 870,
  mcp: 1572,
  media: 673,
  metering: 920,
  oauth: 1026,
  openapi: 2491,
  operations: 4022,
  policy: 686,
  realtime: 2270,
  references: 648,
  routing: 3100,
  secrets: 461,
  stores: 16_932,
  telemetry: 1_541,
  ui: 2746,
  upstream: 4676,
  validation: 236,
  wire: 840,
  workers: 587,
  plugins: 15_051,
}

t.test('no folder has more lines than its budget', async t => {
  const lines = new Map<string, number>()
  for (const file of sourceFiles) {
    const folder = folderOf(file)
    if (/^src\/[^/]+$/.test(file)) continue
    lines.set(folder, (lines.get(folder) ?? 0) + textOf(file).split('\n').length - 1)
  }
  t.strictSame([...lines.keys()].sort(), Object.keys(lineBudgets).sort(), 'every folder has a budget')
  for (const [folder, count] of lines) t.ok(count <= lineBudgets[folder]!, `${folder} has ${count} lines`)
})

t.test('the kernel has at most 60 files', async t => {
  t.ok(sourceFiles.filter(file => folderOf(file) === 'core').length <= 60)
})
