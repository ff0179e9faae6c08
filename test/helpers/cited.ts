/** Finds the ids of checks that tests name. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const tests = fileURLToPath(new URL('..', import.meta.url))
const own = new Set(['reliability.ts', 'reliability.test.ts', 'edge-cases.test.ts'])

/**
 * The files whose test names contain each id that `pattern` matches (global), also in the texts that names are built
 * from.
 */
export function placesOf(pattern: RegExp): ReadonlyMap<string, readonly string[]> {
  const places = new Map<string, string[]>()
  for (const [file, text] of files()) {
    for (const id of citedIn(text, pattern)) places.set(id, [...(places.get(id) ?? []), file])
  }
  return places
}

let read: readonly (readonly [file: string, text: string])[] | undefined
function files(): NonNullable<typeof read> {
  const names = readdirSync(tests, { recursive: true, encoding: 'utf8' })
  read ??= names
    .filter(file => file.endsWith('.ts') && !own.has(file))
    .map(file => [file, readFileSync(join(tests, file), 'utf8')])
  return read
}

/** The ids in the texts of a file, except assertion messages: `t.test` and its like take names. */
function citedIn(text: string, pattern: RegExp): string[] {
  if (text.search(pattern) < 0) return []
  const ids: string[] = []
  const walk = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node)) {
      if (!isMessage(node)) ids.push(...(node.text.match(pattern) ?? []))
    }
    ts.forEachChild(node, walk)
  }
  walk(ts.createSourceFile('test.ts', text, ts.ScriptTarget.ES2023, true))
  return ids
}

/** Whether a text is an assertion message: an argument of `t.equal`, `t.ok` and others, but not of `t.test`. */
function isMessage(node: ts.Node): boolean {
  const text = ts.isTemplateExpression(node.parent) ? node.parent : node
  const call = text.parent
  return (
    ts.isCallExpression(call) && ts.isPropertyAccessExpression(call.expression) && call.expression.name.text !== 'test'
  )
}
