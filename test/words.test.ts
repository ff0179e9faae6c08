/** The words of the code: what `docs/glossary.md` retired does not come back. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { commentsOf, root, sourceFiles, textOf } from './helpers/sources.ts'

/** Names that had no meaning outside this project, by what they are called now. */
const retired: Readonly<Record<string, string>> = {
  Standing: 'OutlierDetector',
  Course: 'TargetQueue',
  Order: 'RankedTargets',
  Chooser: 'TargetSelector',
  Knowledge: 'RoutingState',
  Blame: 'FailureClass',
  blame: 'classifyFailure',
  Pins: 'AffinityStore',
  PinBoard: 'AffinityBoard',
  Flights: 'InFlightRequests',
  Flight: 'InFlightRequest',
  Pace: 'StreamTimeouts',
  Intake: 'BodyGuard',
  answerBroken: 'answerClientError',
  Seat: 'WorkerSlot',
  Beginning: 'WorkerInit',
  Lender: 'LeaseServer',
  Lending: 'LeaseClient',
  Loan: 'Lease',
  Pot: 'SharedQuota',
  Pin: 'AffinityEntry',
  MemoryPins: 'MemoryAffinity',
  Incoming: 'UpstreamResponse',
  Arrivals: 'ChunkQueue',
  Gathering: 'ReadCoalescer',
  Way: 'PoolKey',
  Outgoing: 'SignedRequest',
  OpenCalls: 'PendingToolCalls or InFlightCount',
  Parts: 'Components',
  openParts: 'createComponents',
  Front: 'ServingMode',
  assembled: 'withCleanup',
  Freshness: 'ChangeDetector',
  Directory: 'NameResolver',
  Disk: 'WalSync',
  Threshold: 'Hysteresis',
  Demand: 'ComplianceRequirement',
  Places: 'FairLimiter',
  Room: 'MemoryBudget',
  ByteRoom: 'MemoryBudget',
  Repeated: 'EventTemplate',
  Gathered: 'BlockAccumulator',
  hurry: 'abortDrain',
  parseExact: 'parseLossless',
  Verbatim: 'RawStrings',
  Marks: 'Timings',
  Step: 'a name that says whose: QuirkStep, PairedMessage, CandidateTarget',
  stepOf: 'candidateTargetOf',
  Turn: 'a name that says whose: MessagesTurn, GeminiTurn',
  Fault: 'Issue, or ProviderError',
  UpstreamFault: 'ProviderError',
  Denial: 'AccessIssue',
  readFault: 'readProviderError',
  faultOf: 'errorOf',
  Problem: 'Issue',
  problemOf: 'issueOf',
  misfit: 'argumentError',
  unmet: 'error, or issue',
  drawn: 'output_images, or imageUsage',
  Bending: 'QuirkRun',
  bending: 'run',
  Passages: 'AnswerText',
  spoken: 'output_audio, or audioOutput',
  heard: 'input_audio, or audioInput',
  HURRY_MS: 'ABORT_MS',
  PATIENCE_MS: 'TIMEOUT_MS',
  patience: 'a timeout',
  patienceMs: 'timeoutMs',
  verbatim: 'rawStrings',
  tenantOf: 'Exchange.tenant, or RoutingQuery.tenant',
  Refusal: 'ErrorAnswer',
  refusals: 'errorReader, or errors',
  refusalOf: 'errorOf',
  isRefusal: 'isGatewayError',
  SimulatedRefusal: 'SimulatedError',
  LateTurns: 'TurnBudget',
  BareFrames: 'TokenBucket',
  ReadRate: 'TokenBucket',
  budgetRefusal: 'exhaustedBudget',
  planRefusal: 'exhaustedPlan',
  toldResult: 'resultWithErrorText',
  toldSchema: 'schemaInstruction',
  Tally: 'AnswerCounter',
  FollowUps: 'ResultPoller',
  Lingering: 'AbandonedAnswers',
  HeldAnswer: 'HealingBuffer, or BufferedEvents',
  Said: 'BodyData',
}
/** Of the class Exchange. */
const retiredMembers: Readonly<Record<string, string>> = {
  within: 'currentFilter',
  depth: 'filtersEntered',
  marks: 'timings',
  kept: 'a set of the filter billing',
  finished: 'a list of the filter billing',
  requestedId: 'a part of RoutePlan',
  verbatim: 'rawStrings',
  answerBounds: 'output of Outbound',
  sentOutput: 'output of Outbound',
  sentCacheMark: 'cacheMark of Outbound',
  outboundParts: 'parts of Outbound',
  outputLimit: 'limit of Outbound',
  isPartPaid: 'billedFailure',
}
const retiredFiles = [
  'standing',
  'course',
  'chooser',
  'flights',
  'intake',
  'broken',
  'seat',
  'lender',
  'lending',
  'terminal',
]
  .concat([
    'line',
    'incoming',
    'arrivals',
    'gathering',
    'freshness',
    'directory',
    'kept-modules',
    'heap',
    'exact',
    'verbatim',
    'fault',
    'passages',
    'refusal',
  ])
  .map(name => `/${name}.ts`)

t.test('names that the glossary retired do not come back', async t => {
  const declared = /\b(?:class|interface|type|function\*?|const|let)\s+(\w+)|^\s+(?:async )?#?(\w+)\(.*\).*\{$/gm
  const found = sourceFiles.flatMap(file =>
    [...textOf(file).matchAll(declared)]
      .map(([, declaration, method]) => declaration ?? method!)
      .filter(name => Object.hasOwn(retired, name))
      .map(name => `${file}: ${name} is called ${retired[name]}`),
  )
  t.strictSame(found, [])
})

t.test('there is one type Json, and one Call', async t => {
  const declaring = (name: string) =>
    sourceFiles.filter(file =>
      [...textOf(file).matchAll(/^(?:export )?(?:type|interface|class) (\w+)/gm)].some(([, found]) => found === name),
    )
  t.strictSame(declaring('Json'), ['src/json/json.ts'])
  t.strictSame(declaring('Call'), ['src/mcp/call.ts'])
})

t.test('members of an exchange that were renamed or moved do not come back', async t => {
  const declared = textOf('src/core/exchange.ts').matchAll(/^ {2}(?:readonly )?(\w+)(?::| =)/gm)
  const names = [...declared].map(([, name]) => name!)
  t.ok(names.includes('timings') && names.includes('currentFilter'), 'the pattern finds members')
  const found = names.filter(name => Object.hasOwn(retiredMembers, name))
  t.strictSame(
    found.map(name => `${name} is ${retiredMembers[name]}`),
    [],
  )
})

t.test('files keep the names of what is in them', async t => {
  const found = sourceFiles.filter(file => retiredFiles.some(name => file.endsWith(name)))
  t.strictSame(found, [])
})

const comments = sourceFiles.flatMap(file => commentsOf(file).map(text => ({ file, text })))

/** Words of comments that make a person of a component, or leave open what is meant. */
const asPersons =
  /\b(?:nobody|everybody|somebody|anybody|whoever|wants?|knows|hears|told)\b|\bwho (?:has|is|are|may|must|does|asks|calls|leaves|comes|pays|gets|cannot|left)\b|\b(?:is|are|was|were) (?:asked(?! for)|spared|left alone)\b/i

t.test('comments speak of components as of things, and name what they mean', async t => {
  t.match('Nobody is told.', asPersons, 'the pattern finds the forms that were used')
  const found = comments
    .filter(({ file, text }) => !/^src\/stores\/sqlite\/migrations\//.test(file) && asPersons.test(text))
    .map(({ file, text }) => `${file}: ${text.slice(0, 120)}`)
  t.strictSame(found, [])
})

/** A function, a field or a type in backticks, as this code writes them. */
const namedInBackticks = /`([a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)*)`/g
/** Names of others that comments use, and whose they are. */
const foreignNames: Readonly<Record<string, string>> = {
  doGenerate: "a method of the AI SDK's models",
  Rerank: "an operation of Bedrock's API",
}

t.test('a name in backticks of a comment is one that stands in the code', async t => {
  const words = new Set<string>()
  for (const file of sourceFiles) {
    for (const line of textOf(file).split('\n'))
      if (!/^\s*(?:\/?\*|\/\/)/.test(line)) for (const [word] of line.matchAll(/\w+/g)) words.add(word)
  }
  const named = comments.flatMap(({ file, text }) =>
    [...text.matchAll(namedInBackticks)].map(([, name]) => ({ file, name: name! })),
  )
  t.ok(named.length > 200, `${named.length} names`)
  t.strictSame(
    named
      .filter(({ name }) => !words.has(name) && !Object.hasOwn(foreignNames, name))
      .map(({ file, name }) => `${file}: ${name}`),
    [],
  )
})

t.test('a log line has a constant name: a noun and what happened to it, its values in fields', async t => {
  const isLog = (node: ts.Expression) => /(?:^|[.#])log$/.test(node.getText())
  const found: string[] = []
  let lines = 0
  for (const file of sourceFiles) {
    const text = textOf(file)
    if (!/\blog\b/.test(text)) continue
    const visit = (node: ts.Node): void => {
      ts.forEachChild(node, visit)
      if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return
      const { name, expression } = node.expression
      const message = node.arguments[1]
      if (!/^(?:debug|info|warn|error)$/.test(name.text) || !isLog(expression) || !message) return
      lines++
      if (ts.isIdentifier(message)) return
      const isName = ts.isStringLiteral(message) && /^(?!(?:an?|the) )[\w ;,-]{4,70}$/.test(message.text)
      if (!isName) found.push(`${file}: ${message.getText()}`)
    }
    visit(ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true))
  }
  t.ok(lines > 30, `${lines} lines`)
  t.strictSame(found, [])
})

t.test('every link of a page leads to a file of the project', async t => {
  const pages = ['README.md', 'CONTRIBUTING.md', 'AGENTS.md']
  // Paths of tests.md count from test.
  for (const name of readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('.md') && name !== 'tests.md') pages.push(`docs/${name}`)
  const there = new Set(readdirSync(root, { recursive: false, encoding: 'utf8' }))
  for (const folder of ['docs', 'src', 'test', 'config', 'plugins', 'build', 'providers.d']) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }))
      there.add(`${folder}/${name}`)
  }
  const broken = pages.flatMap(page => {
    const text = textOf(page)
    const links = [...text.matchAll(/\]\(([^)#:]+)\)/g)].map(match => join(page, '..', match[1]!))
    const named = [...text.matchAll(/`((?:src|test|plugins|docs|config|build)\/[\w./-]+)`/g)].map(match => match[1]!)
    return [...links, ...named]
      .map(path => path.replace(/\/$/, ''))
      .filter(path => !there.has(path))
      .map(path => `${page}: ${path}`)
  })
  t.strictSame(broken, [])
})

t.test('the page about money has 500 words at most', async t => {
  const words = textOf('docs/money.md').match(/\S*\w\S*/g) ?? []
  t.ok(words.length <= 500, `${words.length} words`)
})

const MAX_SENTENCE_WORDS = 30
const isLong = (sentence: string): boolean => (sentence.match(/\S*\w\S*/g) ?? []).length > MAX_SENTENCE_WORDS

t.test('a doc comment begins with a verb or a name, and its sentences are short', async t => {
  const begins = /^\/\*\* (?:Of|The same|Those|By|What|Who|Whose|That of)\b/
  const docs = comments.filter(({ text }) => text.startsWith('/** '))
  t.ok(docs.length > 3000, `${docs.length} comments`)
  t.strictSame(
    docs.filter(({ text }) => begins.test(text)).map(({ file, text }) => `${file}: ${text.slice(0, 120)}`),
    [],
  )
  const long = docs.flatMap(({ file, text }) =>
    sentencesOf(text)
      .filter(isLong)
      .map(sentence => `${file}: ${sentence}`),
  )
  t.strictSame(long, [])
})

t.test('a constant that bounds something names its subject, and a number its unit', async t => {
  const vague = /^(?:MOST|LEAST|FEW|FULL|LARGE|SMALL|LONG|SHORT|MANY|MUCH|LIGHT|HEAVY|DEAR)$|^(?:MOST|LEAST)_/
  const bare =
    /^(?:(?:MAX|MIN|DEFAULT)_)?(?:BYTES|CHARACTERS|SIZE|NAME|TEXT|ID|URL|KEY|VALUE|ENTRY|HEAD|REST|KEPT|WAITING|PART|PAGE|LIMIT)$|^(?:BATCH|ROWS|SIDE|WIDTH|HEIGHT|PIXELS)$|(?:^|_)LENGTH$|_HEAD$/
  const found = sourceFiles.flatMap(file =>
    [...textOf(file).matchAll(/^(?:export )?const ([A-Z\d_]+) = (.)/gm)]
      .filter(([, name, first]) => vague.test(name!) || (bare.test(name!) && /\d/.test(first!)))
      .map(([, name]) => `${file}: ${name}`),
  )
  t.strictSame(found, [])
})

t.test('no sentence of a page has more than 30 words', async t => {
  const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.md') && name !== 'tests.md' && !name.startsWith('reference'))
    .map(name => `docs/${name}`)
  const long = [...pages, 'README.md'].flatMap(page =>
    sentencesOf(textOf(page))
      .filter(isLong)
      .map(sentence => `${page}: ${sentence}`),
  )
  t.strictSame(long, [])
})

/** Sentences outside of blocks of code; rows of a table and entries of a list end one. */
const sentencesOf = (page: string): string[] =>
  page
    .replace(/```.*?```/gs, '')
    .split(/\n\s*\n|\n(?=[-*|#])|\|/)
    .flatMap(part => part.replaceAll('\n', ' ').split(/(?<=[.:;?!])\s+/))

/** The name of a test, with the quote that begins it. */
const testName = /\bt\.test\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g

t.test('names of tests do so too', async t => {
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter(file =>
    file.endsWith('.ts'),
  )
  const names = files.flatMap(file => [...textOf(join('test', file)).matchAll(testName)].map(([, , name]) => name!))
  t.ok(names.length > 1000, 'the pattern finds names')
  t.strictSame(
    names.filter(name => asPersons.test(name)),
    [],
  )
})
