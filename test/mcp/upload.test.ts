/** The folder that generated images are saved to. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { save, uploadFolder } from '../../src/mcp/tools/upload.ts'

t.test(
  'X16 only an absolute path of a folder that can be written is taken, and an error names the variable',
  async t => {
    const folder = await mkdtemp(join(tmpdir(), 'uploads-'))
    t.teardown(() => rm(folder, { recursive: true }))
    const file = join(folder, 'a-file')
    await writeFile(file, '')
    t.equal((await uploadFolder(folder))?.path, folder)
    for (const unset of [undefined, '']) t.equal(await uploadFolder(unset), undefined, 'an empty value counts as unset')
    const rows: [given: string, says: string][] = [
      ['images', 'it must be an absolute path'],
      [file, 'it must be a folder that exists'],
      [join(folder, 'none'), 'it must be a folder that exists'],
      [join(file, 'below'), 'it must be a folder that exists'],
    ]
    // Root may write everywhere.
    if (process.getuid?.() !== 0) rows.push(['/', 'it must be a folder that can be written'])
    for (const [given, says] of rows) {
      await t.rejects(
        uploadFolder(given),
        { message: `the environment variable UPLOAD_DIR is "${given}"; ${says}` },
        given,
      )
    }
  },
)

const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(84)])
const filesIn = async (path: string): Promise<string[]> =>
  (await readdir(path, { recursive: true })).filter(name => name.includes('.'))
const image = { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' } as const

t.test('the files of the folder are bounded, and one organization gets half of what others leave', async t => {
  const path = t.testdir({ 'from-the-operator.txt': 'x'.repeat(100) })
  const clock = { now: 0 }
  const folder = (await uploadFolder(path, () => clock.now))!
  const most = 10 * PNG.length + 100
  let names = 0
  const saves = async (org: string, times: number) => {
    const saved = await Promise.all(
      Array.from({ length: times }, () => save(folder, { stem: `${++names}`, extension: '.png' }, [image], org, most)),
    )
    return saved.filter(paths => paths !== undefined).length
  }
  t.equal(await saves('greedy', 20), 5)
  t.equal(await saves('other', 20), 2, 'half of the other five')
  t.equal(await saves('third', 1), 1)
  t.equal(await saves('greedy', 1), 0)
  const restarted = (await uploadFolder(path))!
  t.equal(await save(restarted, { stem: 'a', extension: '.png' }, [image, image], 'greedy', most), undefined)
  t.equal((await filesIn(path)).length, 9, 'what is refused leaves no file')
  for (const name of await filesIn(path)) await rm(join(path, name))
  t.equal(await saves('greedy', 1), 0, 'what is there is read once a minute')
  clock.now += 60_000
  t.equal(await saves('greedy', 1), 1, 'once the operator has removed files')
})

t.test('organizations take turns, whatever waits', async t => {
  const folder = (await uploadFolder(t.testdir({})))!
  const order: string[] = []
  const write = (org: string) =>
    folder.write(org, { bytes: 1, files: 1 }, 1000, async () => {
      order.push(org)
    })
  await Promise.all(['a', 'a', 'a', 'a', 'b'].map(write))
  t.strictSame(order, ['a', 'a', 'b', 'a', 'a'])
})

t.test('an image that cannot be saved leaves no file and takes no room', async t => {
  const path = t.testdir({ org: { 'cat.png': 'first' } })
  const folder = (await uploadFolder(path))!
  const names = { stem: 'cat', extension: '.png' }
  await t.rejects(save(folder, names, [image], 'org', 4 * PNG.length), { code: 'EEXIST' })
  t.strictSame(await filesIn(path), ['org/cat.png'], 'a file that was there stays')
  t.ok(await save(folder, { stem: 'dog', extension: '.png' }, [image], 'org', 4 * PNG.length))
})
