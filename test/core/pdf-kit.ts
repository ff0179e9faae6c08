/** PDFs for tests, of a few objects. */
import { deflateSync } from 'node:zlib'

export const latin = (text: string) => Buffer.from(text, 'latin1')

export const pdf = (...pieces: (string | Buffer)[]) =>
  Buffer.concat(['%PDF-1.7\n', ...pieces].map(piece => (typeof piece === 'string' ? latin(piece) : piece)))

/** Objects with numbers from `first` on, as they stand in a file. */
export const objects = (all: readonly string[], first = 1): string =>
  all.map((object, index) => `${first + index} 0 obj ${object} endobj\n`).join('')

/** A catalog, a tree whose dictionary is `root`, and one page. */
export const treeOf = (root: string, first = 1): string[] => [
  `<</Type/Catalog/Pages ${first + 1} 0 R>>`,
  `<<${root}/Kids[${first + 2} 0 R]>>`,
  '<</Type/Page>>',
]

/** A tree that says to have so many pages. */
export const pages = (count: number | string, first = 1): string =>
  objects(treeOf(`/Type/Pages/Count ${count}`, first), first)

/** A stream of objects, as most writers make them; `junk` stands behind the objects. */
export function packed(all: readonly string[], { first = 1, dictionary = '', junk = '' } = {}): (string | Buffer)[] {
  let at = 0
  const places = all.map((object, index) => {
    const place = `${first + index} ${at} `
    at += object.length + 1
    return place
  })
  const head = places.join('')
  return [
    `99 0 obj <</Type/ObjStm/N ${all.length}/First ${head.length}/Filter/FlateDecode${dictionary}>>\nstream\r\n`,
    deflateSync(latin(`${head}${all.join(' ')} ${junk}`)),
    '\nendstream endobj ',
  ]
}

/** The same of a tree. */
export const packedPages = (count: number | string, first = 1, junk = ''): (string | Buffer)[] =>
  packed(treeOf(`/Type/Pages/Count ${count}`, first), { first, junk })

export const zeros = packed([], { junk: '\0'.repeat(64 * 1024 * 1024) })
