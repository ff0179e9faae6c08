/** PDFs for tests, of a few objects. */
import { latin } from './files.ts'

export const pdf = (...pieces: (string | Buffer)[]): Buffer =>
  Buffer.concat(['%PDF-1.7\n', ...pieces].map(piece => (typeof piece === 'string' ? latin(piece) : piece)))

/** A catalog, a tree that says to have so many pages, and one page. */
export const pages = (count: number): string =>
  `1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Count ${count}/Kids[3 0 R]>> endobj
3 0 obj <</Type/Page>> endobj
`
