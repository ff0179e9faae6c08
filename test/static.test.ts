/**
 * What the code may not contain: ways to run what somebody sent, patterns that take for ever over it, and listeners that
 * throw through their emitters.
 */
import t from 'tap'
import ts from 'typescript'
import { cpuMs } from './helpers/cpu.ts'
import { sourceFiles, textOf } from './helpers/sources.ts'

/** Called with every node of every file, which are parsed once for all tests. */
const visits: ((node: ts.Node, file: string, text: string) => void)[] = []

const running: string[] = []
visits.push((node, file, text) => {
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
    if (['eval', 'Function', 'exec', 'execSync'].includes(node.expression.text))
      running.push(`${file}: ${text.slice(0, 60)}`)
    const pattern = node.arguments[0]
    if (node.expression.text === 'RegExp' && pattern && !ts.isStringLiteral(pattern)) running.push(`${file}: ${text}`)
  }
  if (ts.isNewExpression(node) && ts.isIdentifier(node.expression)) {
    if (node.expression.text === 'Function') running.push(`${file}: ${text.slice(0, 60)}`)
    const pattern = node.arguments?.[0]
    const constant = pattern && (ts.isStringLiteral(pattern) || ts.isNoSubstitutionTemplateLiteral(pattern))
    if (node.expression.text === 'RegExp' && !constant) running.push(`${file}: ${text}`)
  }
  // An operator may start one of a few tools, by name, and lists commands that print secrets.
  const starts = ['src/cli/start-tool.ts', 'src/references/command.ts']
  if (ts.isImportDeclaration(node) && /child_process|node:vm/.test(text) && !starts.includes(file))
    running.push(`${file}: ${text}`)
  // A thread runs a file of ours, not a text.
  if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text === 'eval') {
    running.push(`${file}: ${text}`)
  }
})

const signals: string[] = []
visits.push((node, file, text) => {
  if (ts.isPropertyAccessExpression(node) && /^AbortSignal\.(?:timeout|any)$/.test(text))
    signals.push(`${file}: ${text}`)
})

const SIZE = 64 * 1024
const MAX_MS = 10
const TRIES = 5
/** Texts that patterns which backtrack take long over. */
const repeated = [
  'a',
  '0',
  ' ',
  '\t',
  '"',
  '\\',
  '-',
  '/',
  '.',
  ',',
  ';',
  '=',
  '{',
  '[',
  '<',
  ':',
  '\n',
  'a ',
  'a,',
  '"a',
  'x=',
  '[a',
]

/** Of what only the operator, a provider or this code itself writes; their time grows with the square of a length. */
const trusted = new Set(['src/cli/operation.ts', 'src/cli/io.ts', 'src/lib/printable.ts'])

const patterns = new Map<string, string>()
visits.push((node, file, text) => {
  if (ts.isRegularExpressionLiteral(node) && !trusted.has(file)) patterns.set(text, file)
})

for (const file of sourceFiles) {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.ES2023)
  const walk = (node: ts.Node): void => {
    const text = node.getText(source)
    for (const visit of visits) visit(node, file, text)
    ts.forEachChild(node, walk)
  }
  ts.forEachChild(source, walk)
}

t.test('SI-18 nothing that was sent is run: no eval, no Function, no shell, no pattern of its own', async t => {
  t.strictSame(running, [])
})

t.test('deadlines are timers that are referenced, never signals that can be collected before their time', async t => {
  t.strictSame(signals, [])
})

t.test('MF-19 no pattern takes long over any text', async t => {
  t.ok(patterns.size > 50, `${patterns.size} patterns`)
  for (const [text, file] of patterns) {
    const end = text.lastIndexOf('/')
    const source = text.slice(1, end)
    const pattern = new RegExp(source, text.slice(end + 1).replace('g', ''))
    // Words of the pattern itself lead farthest into it.
    const words = source.match(/[A-Za-z]{3,}|data:|[a-z]+\\?[/=:;]/g) ?? []
    const slow = [...repeated, ...words.map(word => word.replaceAll('\\', ''))].filter(unit => {
      const long = `${words[0] ?? ''}${unit.repeat(SIZE / unit.length)}\0`
      const times: number[] = []
      while (times.length < TRIES && !times.some(ms => ms < MAX_MS)) {
        times.push(cpuMs(() => pattern.test(long)))
      }
      return Math.min(...times) >= MAX_MS
    })
    t.strictSame(slow, [], `${file}: ${text}`)
  }
})

/** Methods that take a listener as their last argument. */
const REGISTERS = new Set(['on', 'once', 'addListener', 'prependListener', 'addEventListener'])
/** What a listener may call without a guard: it ends, settles, counts or schedules something, and does not throw. */
const HARMLESS = new Set(
  (
    'cancelConnect catch clearTimeout concat delete destroy end error fail failed ignore off onError pause push reject ' +
    'removeAllListeners removeEventListener replace resolve resume setImmediate setTimeout splice subarray terminate then ' +
    'toLowerCase unref warn'
  ).split(' '),
)
/** Errors that are made, and controllers, which report what their own listeners throw. */
const HARMLESS_TEXT = /^errors\.|controller\.abort$|(?:Error|Timeout)$/
/** Files whose listeners are not guarded, and why. */
const EXEMPT: Readonly<Record<string, string>> = {
  'src/cli.ts': 'a command ends by what it throws',
  'src/egress/media.ts': 'who waits gives up a place in a queue',
  'src/http/content-coding.ts': 'the receiver of a body catches what it throws',
  'src/app/heal-thread.ts': 'what a thread throws ends it, and is told to its owner',
  'src/lib/text-socket.ts': 'it calls the listener of a channel, which guards itself',
}

type Listener = ts.FunctionLikeDeclaration

/** Every function of a file that has a name, by that name. */
function functionsOf(source: ts.SourceFile): Map<string, ts.Node> {
  const found = new Map<string, ts.Node>()
  const walk = (node: ts.Node): void => {
    if ((ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) && node.name)
      found.set(node.name.getText(source), node)
    if ((ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node)) && node.initializer)
      found.set(node.name.getText(source), node.initializer)
    ts.forEachChild(node, walk)
  }
  walk(source)
  return found
}

/** Names what in `listener` may throw; undefined when it is guarded or harmless. */
function danger(
  listener: ts.Node,
  source: ts.SourceFile,
  named: ReadonlyMap<string, ts.Node>,
  seen = new Set<ts.Node>(),
): string | undefined {
  const nameOf = (callee: ts.Node): string =>
    (ts.isPropertyAccessExpression(callee) ? callee.name : callee).getText(source)
  const isOwn = (callee: ts.Node) =>
    ts.isIdentifier(callee) ||
    (ts.isPropertyAccessExpression(callee) && callee.expression.kind === ts.SyntaxKind.ThisKeyword)
  const called = (callee: ts.Node): string | undefined => {
    const target = isOwn(callee) ? named.get(nameOf(callee)) : undefined
    const made = target && ts.isCallExpression(target) ? nameOf(target.expression) : undefined
    // What another call returns is known by its name alone.
    if (target && (made === undefined || made === 'guarded')) return danger(target, source, named, seen)
    return HARMLESS.has(nameOf(callee).replace('#', '')) || HARMLESS_TEXT.test(callee.getText(source))
      ? undefined
      : callee.getText(source)
  }
  const inside = (node: ts.Node): string | undefined => {
    // What the guarded block throws is caught; a function within is run by others.
    if (ts.isTryStatement(node) && node.catchClause) return inside(node.catchClause.block)
    if (ts.isFunctionLike(node)) return undefined
    if (ts.isThrowStatement(node)) return node.getText(source)
    const own = ts.isCallExpression(node) || ts.isNewExpression(node) ? called(node.expression) : undefined
    return own ?? ts.forEachChild(node, inside)
  }
  if (seen.has(listener)) return undefined
  seen.add(listener)
  if (ts.isCallExpression(listener))
    return nameOf(listener.expression) === 'guarded' ? undefined : listener.getText(source)
  const body = (listener as Listener).body
  return ts.isFunctionLike(listener) && body ? inside(body) : called(listener)
}

function dangersIn(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true)
  const named = functionsOf(source)
  const found: string[] = []
  const walk = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { expression, name } = node.expression
      const listener = node.arguments[1]
      // The events of the process itself are the last resort, and end it in order.
      const isProcess = expression.getText(source) === 'process'
      if (REGISTERS.has(name.text) && listener && !ts.isObjectLiteralExpression(listener) && !isProcess) {
        const what = danger(listener, source, named)
        if (what !== undefined) found.push(`${file}: ${node.getText(source).split('\n')[0]} calls ${what}`)
      }
    }
    ts.forEachChild(node, walk)
  }
  walk(source)
  return found
}

t.test('the rule sees what may throw, and what is guarded', t => {
  const rows: [text: string, dangers: number][] = [
    ['socket.on("data", chunk => parse(chunk))', 1],
    ['socket.on("data", guarded(chunk => parse(chunk), fail))', 0],
    ['socket.once("close", () => { try { parse() } catch { socket.destroy() } })', 0],
    ['socket.once("close", () => { try { parse() } catch { parse() } })', 1],
    ['socket.once("close", () => { throw new Error() })', 1],
    ['const end = () => socket.destroy(); socket.once("close", end)', 0],
    ['const end = () => parse(); socket.once("close", () => end())', 1],
    ['class A { #end = () => parse(); open() { socket.on("end", this.#end) } }', 1],
    ['class A { end() { this.end() } open() { signal.addEventListener("abort", () => this.end()) } }', 0],
    ['socket.on("data", take)', 1],
    ['new Promise((resolve, reject) => socket.once("end", resolve).once("error", reject))', 0],
    ['process.on("exit", () => parse())', 0],
  ]
  for (const [text, dangers] of rows) t.equal(dangersIn('a.ts', text).length, dangers, text)
  t.end()
})

t.test('no listener of an emitter throws through: it is guarded, or does nothing that may throw', t => {
  const registers = /\.(?:on|once|addListener|prependListener|addEventListener)\(/
  const files = sourceFiles.filter(
    file => !(file in EXEMPT) && !file.startsWith('src/cli/') && registers.test(textOf(file)),
  )
  t.strictSame(
    files.flatMap(file => dangersIn(file, textOf(file))),
    [],
  )
  t.end()
})
