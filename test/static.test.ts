/** What the code may not contain: ways to run what somebody sent, and patterns that take for ever over it. */
import t from 'tap'
import ts from 'typescript'
import { cpuMs } from './helpers/cpu.ts'
import { sourceFiles, textOf } from './helpers/sources.ts'

/** Calls `visit` with every node of every file. */
function everyNode(visit: (node: ts.Node, file: string, text: string) => void): void {
  for (const file of sourceFiles) {
    const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.ES2023)
    const walk = (node: ts.Node): void => {
      visit(node, file, node.getText(source))
      ts.forEachChild(node, walk)
    }
    ts.forEachChild(source, walk)
  }
}

t.test('SI-18 nothing that was sent is run: no eval, no Function, no shell, no pattern of its own', async t => {
  const found: string[] = []
  everyNode((node, file, text) => {
    if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
      if (['eval', 'Function', 'exec', 'execSync'].includes(node.expression.text))
        found.push(`${file}: ${text.slice(0, 60)}`)
      const pattern = node.arguments[0]
      if (node.expression.text === 'RegExp' && pattern && !ts.isStringLiteral(pattern)) found.push(`${file}: ${text}`)
    }
    if (ts.isNewExpression(node) && ts.isIdentifier(node.expression)) {
      if (node.expression.text === 'Function') found.push(`${file}: ${text.slice(0, 60)}`)
      const pattern = node.arguments?.[0]
      const constant = pattern && (ts.isStringLiteral(pattern) || ts.isNoSubstitutionTemplateLiteral(pattern))
      if (node.expression.text === 'RegExp' && !constant) found.push(`${file}: ${text}`)
    }
    // An operator may start one of a few tools, by name.
    if (ts.isImportDeclaration(node) && /child_process|node:vm/.test(text) && file !== 'src/cli/start-tool.ts')
      found.push(`${file}: ${text}`)
    // A thread runs a file of ours, not a text.
    if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text === 'eval') {
      found.push(`${file}: ${text}`)
    }
  })
  t.strictSame(found, [])
})

t.test('deadlines are timers that are referenced, never signals that can be collected before their time', async t => {
  const found: string[] = []
  everyNode((node, file, text) => {
    if (ts.isPropertyAccessExpression(node) && /^AbortSignal\.(?:timeout|any)$/.test(text))
      found.push(`${file}: ${text}`)
  })
  t.strictSame(found, [])
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
const trusted = new Set(['src/cli/exposition.ts', 'src/cli/io.ts'])

t.test('MF-19 no pattern takes long over any text', async t => {
  const patterns = new Map<string, string>()
  everyNode((node, file, text) => {
    if (ts.isRegularExpressionLiteral(node) && !trusted.has(file)) patterns.set(text, file)
  })
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
