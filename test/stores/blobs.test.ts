/** Results of jobs in files: what is missing is told from what cannot be read. */
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileBlobs } from '../../src/stores/blobs.ts'
import { temporaryFolder } from './subject.ts'

const TOO_LARGE = () => new Error('too large')

async function* pieces(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

async function textOf(chunks: AsyncIterable<Buffer> | undefined): Promise<string | undefined> {
  if (!chunks) return undefined
  let text = ''
  for await (const chunk of chunks) text += chunk.toString('utf8')
  return text
}

t.test('a blob is read in part and in whole, until it is removed', async t => {
  const blobs = new FileBlobs(temporaryFolder(t))
  const { blob, bytes } = await blobs.write(pieces('one', 'two'), 6, TOO_LARGE)
  t.equal(bytes, 6)
  t.equal(await textOf(await blobs.read(blob, 0, 5)), 'onetwo')
  t.equal(await textOf(await blobs.read(blob, 2, 3)), 'et')
  await blobs.remove(blob)
  t.equal(await blobs.read(blob, 0, 5), undefined)
})

t.test('a blob that cannot be opened is not taken for one that is missing', async t => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'ab'), 'a file where a folder is due')
  const blobs = new FileBlobs(folder)
  await t.rejects(blobs.read('ab12', 0, 5), { code: 'ENOTDIR' })
  t.equal(await blobs.read('cd12', 0, 5), undefined)
})

t.test('a sweep removes old files that no row names, and no others', async t => {
  const folder = temporaryFolder(t)
  const blobs = new FileBlobs(folder)
  mkdirSync(join(folder, 'ab'))
  for (const name of ['ab-old', 'ab-named', 'ab-new']) writeFileSync(join(folder, 'ab', name), '')
  for (const name of ['ab-old', 'ab-named']) utimesSync(join(folder, 'ab', name), 0, 0)
  writeFileSync(join(folder, 'readme'), 'is no folder of blobs')
  await blobs.sweep(async names => new Set(names.filter(name => name === 'ab-named')), Date.now())
  t.strictSame(readdirSync(join(folder, 'ab')).sort(), ['ab-named', 'ab-new'])
})

t.test('a sweep of a folder that cannot be read rejects; one of none does nothing', async t => {
  const folder = temporaryFolder(t)
  const none = async () => new Set<string>()
  await new FileBlobs(join(folder, 'none')).sweep(none, Date.now())
  writeFileSync(join(folder, 'file'), '')
  await t.rejects(new FileBlobs(join(folder, 'file')).sweep(none, Date.now()), { code: 'ENOTDIR' })
})
