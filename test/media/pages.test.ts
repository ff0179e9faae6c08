/** Pages of a PDF, by the largest number that its trees say. */
import t from 'tap'
import { pdfPages } from '../../src/media/pages.ts'
import { Base64File, MEDIA_BUDGET } from '../../src/media/source.ts'
import { latin } from './files.ts'
import { pages, pdf } from './pdf-kit.ts'

const found = (bytes: Buffer, budget = { ...MEDIA_BUDGET }) =>
  pdfPages(new Base64File(bytes.toString('base64')), budget)

t.test('a PDF has as many pages as its largest tree', async t => {
  const filler = Buffer.alloc(1_500_000, 'x')
  const rows: [says: string, bytes: Buffer, pages: number | undefined][] = [
    ['one tree', pdf(pages(7)), 7],
    ['an earlier version', pdf(pages(9), pages(7)), 9],
    ['nested trees', pdf('<</Type/Pages/Count 3>><</Type/Pages /Count  12>>'), 12],
    ['a number in a line of its own', pdf('/Count\r\n12 '), 12],
    ['a tree behind much', pdf(filler, pages(7)), 7],
    ['a tree before much', pdf(pages(7), filler), 7],
    ['a tree in the middle', pdf(filler, pages(7), filler), undefined],
    ['a file of more than half the search', pdf(filler.subarray(0, 700_000), pages(7)), 7],
    ['no tree', pdf('x'), undefined],
    ['bookmarks that are closed', pdf('/Count -12'), undefined],
    ['a number that no file has', pdf('/Count 99999999999'), undefined],
    ['another name', latin('/Counts 7 /Count/7'), undefined],
  ]
  for (const [says, bytes, expected] of rows) t.equal(found(bytes), expected, says)
})

t.test('a PDF beyond the budget has no known pages', async t => {
  t.equal(found(pdf(pages(7)), { work: 1 }), undefined)
})
