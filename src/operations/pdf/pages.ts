/** Counts the pages of a PDF (ISO 32000-2 section 7.7.3), without reading any of them. */
import { type PdfBudget, spend, Unclear } from './budget.ts'
import { type Dictionary, KEY } from './dictionary.ts'
import { PdfObjects } from './objects.ts'
import { closesArray, endOfValue, integerAt, isNamed, opensArray, referenceAt, skipSpace } from './syntax.ts'

/** No tree of pages is as deep, and no file has as many of them. */
const MAX_LEVELS = 64
const MAX_PAGES = 9_999_999

/**
 * Pages of the largest tree, of those in earlier versions of the file too, as its numbers and its leaves say: no reader finds
 * more. Undefined where readers may find others: some of the file cannot be looked into, or is taken in different ways.
 */
export function pdfPages(bytes: Buffer, budget: PdfBudget): number | undefined {
  if (bytes.length > budget.read) return undefined
  budget.read -= bytes.length
  try {
    return pagesIn(new PdfObjects(bytes, budget), budget) || undefined
  } catch (error) {
    if (error instanceof Unclear) return undefined
    throw error
  }
}

function pagesIn(objects: PdfObjects, budget: PdfBudget): number {
  const tree = new PageTree(objects, budget)
  let most = objects.linearized
  for (const number of objects.trees) {
    // Some readers take the number of what is no tree, or look for one above it.
    if (objects.leaves.has(number)) throw new Unclear('tree')
    most = Math.max(most, tree.pagesOf(number, 0))
  }
  return objects.trees.size > 0 ? most : 0
}

/** In the middle of counting, which makes a circle. */
const OPEN = -1

class PageTree {
  readonly #objects: PdfObjects
  readonly #budget: PdfBudget
  readonly #pages = new Map<number, number>()

  constructor(objects: PdfObjects, budget: PdfBudget) {
    this.#objects = objects
    this.#budget = budget
  }

  /** Of the object of that number, the most that one of its versions has. */
  pagesOf(number: number, level: number): number {
    const nodes = this.#objects.nodes.get(number)
    const isLeaf = this.#objects.leaves.has(number)
    if (this.#objects.others.has(number) || !(nodes || isLeaf)) throw new Unclear('page')
    if (!nodes) return 1
    const known = this.#pages.get(number)
    if (known === OPEN || level > MAX_LEVELS) throw new Unclear('tree')
    if (known !== undefined) return known
    this.#pages.set(number, OPEN)
    let most = isLeaf ? 1 : 0
    for (const node of nodes) most = Math.max(most, this.#countOf(node), this.#leavesOf(node, level))
    if (most > MAX_PAGES) throw new Unclear('pages')
    this.#pages.set(number, most)
    return most
  }

  /** As its number says; readers count the leaves where there is none, and take what has another type for a page. */
  #countOf(node: Dictionary): number {
    const isTree = node.has(KEY.Type) && isNamed(node.bytes, node.at(KEY.Type), 'Pages')
    return Math.max(isTree ? 0 : 1, node.has(KEY.Count) ? integerAt(node.bytes, node.at(KEY.Count)) : 0)
  }

  #leavesOf(node: Dictionary, level: number): number {
    const { bytes } = node
    const kids = node.at(KEY.Kids)
    if (!opensArray(bytes, kids)) throw new Unclear('kids')
    let leaves = 0
    let at = skipSpace(bytes, kids + 1)
    while (!closesArray(bytes, at)) {
      spend(this.#budget, 'references', 1)
      leaves += this.pagesOf(referenceAt(bytes, at), level + 1)
      at = skipSpace(bytes, endOfValue(bytes, at))
    }
    return leaves
  }
}
