/** The source files of the project, for tests of the code itself. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** All of `src` and `plugins`, from the root of the project. */
export const sourceFiles: readonly string[] = ['src', 'plugins'].flatMap(folder =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => join(folder, name)),
)

/** The text of a file, by its path from the root. */
export const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The comments of a file by its path from the root, each as one line. */
export function commentsOf(file: string): string[] {
  const text = textOf(file)
  const found: string[] = []
  const seen = new Set<number>()
  const collect = (ranges: readonly ts.CommentRange[] | undefined) => {
    for (const { pos, end } of ranges ?? []) {
      if (seen.has(pos)) continue
      seen.add(pos)
      found.push(text.slice(pos, end).replace(/\s*\n\s*(?:\*(?!\/))?\s*/g, ' '))
    }
  }
  const walk = (node: ts.Node): void => {
    collect(ts.getLeadingCommentRanges(text, node.pos))
    collect(ts.getTrailingCommentRanges(text, node.end))
    ts.forEachChild(node, walk)
  }
  walk(ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, false))
  return found
}
