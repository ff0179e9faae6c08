/** Finds the codes of errors that the source names: literals of parameters, properties and constants named `code`. */
import ts from 'typescript'
import { sourceFiles, textOf } from './sources.ts'

const parse = (file: string) => ts.createSourceFile(file, textOf(file), ts.ScriptTarget.ES2023, true)
const nameOf = (node: ts.Node | undefined): string | undefined =>
  node && (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) ? node.text : undefined

/** The name by which a function is called: a constructor's is the name of its class. */
function calledName(node: ts.SignatureDeclaration): string | undefined {
  if (ts.isConstructorDeclaration(node)) return nameOf(node.parent.name)
  const named = ts.isArrowFunction(node) || ts.isFunctionExpression(node) ? node.parent : node
  return 'name' in named ? nameOf(named.name as ts.Node | undefined) : undefined
}

/** Literals of an expression that it may evaluate to, in either branch of a choice. */
function valuesOf(node: ts.Node | undefined): string[] {
  if (!node) return []
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isConditionalExpression(node)) return [...valuesOf(node.whenTrue), ...valuesOf(node.whenFalse)]
  if (ts.isBinaryExpression(node)) return [...valuesOf(node.left), ...valuesOf(node.right)]
  return ts.isParenthesizedExpression(node) ? valuesOf(node.expression) : []
}

/** A code of a provider's report is read, not answered. */
const isReport = (node: ts.Node): boolean =>
  ts.isCallExpression(node.parent) && nameOf(node.parent.expression) === 'upstreamError'

/** The codes, each with the files that name it. */
export function codesInSource(): Map<string, string[]> {
  const sources = sourceFiles.map(parse)
  const places = new Map<string, Set<number>>()
  const found = new Map<string, string[]>()
  const add = (node: ts.Node | undefined, file: string) => {
    for (const code of valuesOf(node)) {
      if (/^[a-z]+(?:_[a-z]+)*$/.test(code)) found.set(code, [...(found.get(code) ?? []), file])
    }
  }
  const visit = (walk: (node: ts.Node, file: string) => void) => {
    for (const source of sources) {
      const each = (node: ts.Node): void => {
        walk(node, source.fileName)
        ts.forEachChild(node, each)
      }
      each(source)
    }
  }
  visit((node, file) => {
    if (!ts.isFunctionLike(node)) return
    for (const [index, { name, initializer }] of node.parameters.entries()) {
      if (nameOf(name) !== 'code') continue
      add(initializer, file)
      const called = calledName(node)
      if (called) places.set(called, (places.get(called) ?? new Set()).add(index))
    }
  })
  visit((node, file) => {
    if (ts.isPropertyAssignment(node) && nameOf(node.name) === 'code' && !isReport(node.parent)) {
      add(node.initializer, file)
    }
    if (ts.isTypeAliasDeclaration(node) && node.name.text === 'OAuthCode' && ts.isUnionTypeNode(node.type)) {
      for (const one of node.type.types) if (ts.isLiteralTypeNode(one)) add(one.literal, file)
    }
    if (ts.isVariableDeclaration(node) && nameOf(node.name) === 'code') add(node.initializer, file)
    if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return
    const { expression } = node
    const called = nameOf(ts.isPropertyAccessExpression(expression) ? expression.name : expression)
    for (const index of places.get(called ?? '') ?? []) add(node.arguments?.[index], file)
  })
  return found
}
