/** How many pages a PDF has, before a provider reads it: as many as any reader finds in it, or unknown. */
import { randomBytes } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { PDF_BUDGET } from '../../src/operations/pdf/budget.ts'
import { pdfPages } from '../../src/operations/pdf/pages.ts'
import { latin, objects, packed, packedPages, pages, pdf, treeOf } from './pdf-kit.ts'

type Row = [says: string, bytes: Buffer, pages: number | undefined]
const countOf = (bytes: Buffer) => pdfPages(bytes, { ...PDF_BUDGET })
const check = (t: Test, rows: Row[]) => {
  for (const [says, bytes, found] of rows) t.equal(countOf(bytes), found, says)
}
const tree = (root: string) => pdf(objects(treeOf(root)))
/** A tree whose pages are `kids`, and objects behind it. */
const kids = (numbers: string, count: number, ...more: string[]) =>
  pdf(objects(['<</Pages 2 0 R>>', `<</Type/Pages/Kids[${numbers}]/Count ${count}>>`, '<</Type/Page>>', ...more]))
/** Characters that hardly can be packed. */
const noise = (length: number) => randomBytes(length).toString('latin1').replaceAll('/', ' ')

t.test('a number may be written in many ways', t => {
  check(t, [
    ['as usual', tree('/Type/Pages/Count 1000'), 1000],
    ['escaped', tree('/Type/Pages/#43oun#74 1000'), 1000],
    ['behind a comment', tree('/Type/Pages/Count%x\n1000'), 1000],
    ['behind a zero byte', tree('/Type/Pages/Count\0 1000'), 1000],
    ['with a sign', tree('/Type/Pages/Count +1000'), 1000],
    ['with zeros', tree('/Type/Pages/Count 00000000000001000'), 1000],
    ['with a title', tree('/Type /#50ages/Title(/Count 1)/Count 1000'), 1000],
    ['as a fraction', tree('/Type/Pages/Count 1000.0'), undefined],
    ['below zero', tree('/Type/Pages/Count -1'), undefined],
    ['too large', tree('/Type/Pages/Count 10000000'), undefined],
    ['elsewhere', tree('/Type/Pages/Count 7 0 R'), undefined],
    ['twice', tree('/Type/Pages/Count 1/#43ount 1000'), undefined],
    ['with an escape that is none', tree('/Type/Pages/Count 1/#4ount 1000'), undefined],
    ['with a byte that is space to some', tree('/Type/Pages/Count 1/Count\x80 1000'), undefined],
    ['of another type', tree('/Type/Page/Count 1000'), 1000],
    ['without a type', tree('/Count 1000'), 1000],
    ['behind a word', tree('/Type/Pages/Count 1 x/Count 1000'), undefined],
  ])
  t.end()
})

t.test('the leaves of a tree count as well as its number', t => {
  const many = Array.from({ length: 40 }, () => '3 0 R').join(' ')
  const inner = `<</Type/Pages/Kids[${many}]/Count 1>>`
  check(t, [
    ['more leaves', kids(many, 1), 40],
    ['leaves and no number', tree('/Type/Pages/X<</Count 1000>>'), 1],
    ['many of them', pdf(objects(['<</Pages 2 0 R>>', inner.replace('/Count 1', ''), '<</Type/Page>>'])), 40],
    ['more leaves further below', kids('4 0 R 4 0 R', 2, inner), 80],
    ['an outline of more entries', pdf(pages(3), '9 0 obj<</Type/Outlines/First 8 0 R/Count 400>>endobj'), 3],
    ['a number beside the tree', pdf(pages(3), '9 0 obj<</X<</Count 90>>/Title(a)>>'), 3],
    ['a number in a string', tree('/Type/Pages/A(\\)/Count 90 (>>))/Count 3'), 3],
    ['no tree', pdf(objects(['<</Type/Catalog>>'])), undefined],
    ['a tree that is a page', pdf(objects(['<</Pages 2 0 R>>', '<</Type/Pages/Count 7>>'])), undefined],
    ['a tree within the catalog', pdf(objects(['<</Pages<</Count 7>>>>']), pages(1, 5)), undefined],
    ['a page that is missing', kids('3 0 R 8 0 R', 2), undefined],
    ['a page that is a reference', kids('3 0 R 4 0 R', 2, '3 0 R'), undefined],
    ['a page within the tree', kids('3 0 R<</Type/Page>>', 2), undefined],
    ['pages that stand elsewhere', pdf(pages(1).replace('[3 0 R]', ' 4 0 R'), '4 0 obj[3 0 R 3 0 R]'), undefined],
    ['a circle', kids('3 0 R 2 0 R', 2), undefined],
    [
      'many levels',
      kids('4 0 R', 1, ...Array.from({ length: 99 }, (_, at) => inner.replaceAll('3 0', `${at + 5} 0`))),
      undefined,
    ],
    ['a dictionary without an end', pdf(pages(1), '9 0 obj<</A(b'), undefined],
  ])
  t.end()
})

t.test('a tree stands in each version of a file, and wherever tables lead', t => {
  const table = (at: number, number = 2) => `xref\n${number} 1\n${String(at).padStart(10, '0')} 00000 n \n`
  const at = (bytes: Buffer, of: string) => bytes.indexOf(of)
  const decoy = pdf(pages(1), '12 0 obj<</Type/Pages/Kids[3 0 R]/Count 1000>>endobj\n')
  const loose = pdf(pages(1), '2 0 xyz<</Type/Pages/Kids[3 0 R]/Count 1000>>endobj\n')
  const row = (place: number) => Buffer.from([2, 1, 0, place, 0])
  const stream = (place: number, dictionary = '/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 4>>') => [
    `20 0 obj<</Type/XRef/Size 3/Index[2 1]/W[1 2 1]/Root 1 0 R${dictionary}>>stream\n`,
    deflateSync(row(place)),
    '\nendstream endobj startxref 7 %%EOF',
  ]
  const behind = (bytes: Buffer, ...pieces: (string | Buffer)[]) => Buffer.concat([bytes, pdf(...pieces).subarray(9)])
  check(t, [
    ['the largest of several', pdf(pages(3), ...packedPages(40, 11), ...packedPages(7, 21)), 40],
    ['a version of the same number', pdf(pages(3), pages(9), pages(5)), 9],
    ['what a linearized file says', pdf(pages(3), '9 0 obj<</Linearized 1/N 30>>endobj'), 30],
    ['a table', behind(decoy, table(at(decoy, '2 0 obj'))), 1],
    ['a table that leads into a number', behind(decoy, table(at(decoy, '12 0 obj') + 1)), undefined],
    ['a table that leads to another object', behind(decoy, table(at(decoy, '12 0 obj'))), undefined],
    ['a table that leads to what is none to some', behind(loose, table(at(loose, '2 0 xyz'))), undefined],
    ['a table that is wrong', behind(decoy, table(at(decoy, '<</Type'))), 1],
    ['a table of another form', behind(decoy, table(9).replace(' n \n', ' n\n')), undefined],
    ['a table in a stream', behind(decoy, ...stream(at(decoy, '2 0 obj'))), 1],
    ['one that leads into a number', behind(decoy, ...stream(at(decoy, '12 0 obj') + 1)), undefined],
    [
      'one of too few rows',
      behind(
        decoy,
        ...stream(0, '/Filter/FlateDecode/Index[0 9]').map(piece =>
          typeof piece === 'string' ? piece.replace('/Index[2 1]', '') : piece,
        ),
      ),
      undefined,
    ],
    ['one that cannot be read', behind(decoy, ...stream(0, '/Filter/LZWDecode')), undefined],
    ['a header in two lines', pdf(pages(1), '9 0 %\nobj<<>>'), undefined],
    ['a header with a fraction', pdf(pages(1), '9.0 0 obj<<>>'), undefined],
    ['a catalog within the trailer', pdf(pages(1), 'trailer<</Root<</Pages 9 0 R>>>>'), undefined],
  ])
  t.end()
})

t.test('all streams of objects are read, each once and to its end', t => {
  const [head] = packedPages(7) as [string]
  const profile = deflateSync(Buffer.concat([Buffer.from([0, 0, 12, 72]), latin('Lino'), randomBytes(3136)]))
  const plain =
    '9 0 obj<</N 3/First 14>>stream\n1 0 2 17 3 53 <</Pages 2 0 R>> <</Type/Pages/Count 8/Kids[3 0 R]>> <<>>'
  const named = (text: string, name: string) =>
    packedPages(7).map(piece => (typeof piece === 'string' ? piece.replace(text, name) : piece))
  check(t, [
    ['one', pdf(...packedPages(600)), 600],
    ['one whose type is escaped', pdf(pages(1), ...named('ObjStm', '#4fbjStm')), 7],
    ['one without a type', pdf(pages(1), ...named('/Type/ObjStm', '')), 7],
    ['one whose filter is in an array', pdf(...named('/FlateDecode', '[/Fl#61teDecode]')), 7],
    ['one with another filter', pdf(pages(1), ...named('FlateDecode', 'Fl')), undefined],
    [
      'one with parameters',
      pdf(pages(1), ...packed(treeOf('/Count 9'), { dictionary: '/DecodeParms<<>>' })),
      undefined,
    ],
    ['one whose numbers stand elsewhere', pdf(pages(1), ...named('/N 3', '/N 4 0 R')), undefined],
    ['one of more objects', pdf(pages(1), ...named('/N 3', '/N 4')), undefined],
    ['one without a filter', pdf(plain), 8],
    ['one whose end may stand in it', pdf(pages(1), plain.replace('8/', '8%endstream\n/')), undefined],
    [
      'one whose objects may stand behind its end',
      pdf(pages(1), plain.replace('<</Pages', 'endstream  <</Pages')),
      undefined,
    ],
    [
      'one that says many times what it is',
      pdf(...packed(treeOf('/Type/Pages/Count 7'), { dictionary: '/A/ObjStm'.repeat(200), junk: noise(20_000) })),
      7,
    ],
    ['one that does not say where they begin', pdf(pages(1), ...named('/First', '/Firs')), undefined],
    ['a profile of colours', pdf(pages(1), '9 0 obj<</N 3/Filter/FlateDecode>>stream\n', profile, '\nendstream'), 1],
    ['its dictionary and another one', pdf('<</Type/ObjStm>>endobj ', ...packedPages(7)), 7],
    ['several', pdf(...packedPages(7), ...packed([]), ...packedPages(9, 11), ...packedPages(8, 21)), 9],
    ['one without an end', pdf(...packedPages(7).slice(0, 2)), 7],
    ['one whose end is missing', pdf(head, deflateSync(latin('1 0 <<>>')).subarray(0, -9), ...packed([])), undefined],
    ['one of an encrypted file', pdf(...packedPages(7), 'trailer<</Encrypt 9 0 R>>'), undefined],
    ['none in an encrypted file', pdf(pages(7), 'trailer<</Encrypt 9 0 R>>'), 7],
  ])
  t.end()
})

t.test('what streams of objects become is bounded by what they are', t => {
  const KIB = 1024
  const misses = (bytes: number) => packedPages(7, 1, '/Coun'.repeat(bytes / 5))
  const stages: [says: string, bytes: Buffer, pages: number | undefined, most: number][] = [
    ['a small one', pdf(...misses(60 * KIB)), 7, 61 * KIB],
    ['another one of the same request', pdf(...misses(60 * KIB)), undefined, 20 * KIB],
    ['one that is packed as writers do', pdf(...packedPages(9, 1, noise(2 * KIB).repeat(20))), 9, 42 * KIB],
    ['a large one', pdf(...misses(4096 * KIB - 200)), undefined, 256 * KIB],
    ['several in a file', pdf(...Array.from({ length: 60 }, () => misses(60 * KIB)).flat()), undefined, 20 * KIB],
    [
      'one that is none',
      pdf('9 0 obj<</N 1/First 4/Filter/FlateDecode>>stream\n', noise(100), '\nendstream'),
      undefined,
      4 * KIB,
    ],
    ['one behind all of them', pdf(...packedPages(8, 1, noise(2 * KIB))), 8, 4 * KIB],
  ]
  const budget = { ...PDF_BUDGET }
  for (const [says, bytes, found, most] of stages) {
    const { inflated } = budget
    t.equal(pdfPages(bytes, budget), found, says)
    t.ok(inflated - budget.inflated <= most, `${says}: ${inflated - budget.inflated} bytes`)
  }
  t.end()
})

t.test('what is looked at is bounded', t => {
  check(t, [
    ['objects', pdf(pages(3), '9 0 obj<<>>'.repeat(PDF_BUDGET.objects)), undefined],
    ['streams', pdf(pages(3), ...Array.from({ length: PDF_BUDGET.streams }, () => packed([])).flat()), 3],
    [
      'more of them',
      pdf(pages(3), ...Array.from({ length: PDF_BUDGET.streams + 1 }, () => packed([])).flat()),
      undefined,
    ],
    ['pages', kids('3 0 R '.repeat(PDF_BUDGET.references + 1), 1), undefined],
    ['entries', pdf(pages(3), 'xref 0 999999 '), undefined],
    [
      'objects within each other',
      pdf(pages(3), '9 0 obj<</A('.repeat(500), 'x'.repeat(99_999), ')>>'.repeat(500)),
      undefined,
    ],
    [
      'objects of the same stream',
      pdf(pages(3), '9 0 obj<</N 999/First 9000>>stream\n', '8 0 '.repeat(999), ' '.repeat(99_999)),
      undefined,
    ],
    ['comments', pdf(pages(3), '9 0 obj%'.repeat(9999)), undefined],
  ])
  t.end()
})
