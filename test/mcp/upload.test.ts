/** The folder that generated images are saved to. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { uploadFolder } from '../../src/mcp/tools/upload.ts'

t.test(
  'X16 only an absolute path of a folder that can be written is taken, and an error names the variable',
  async t => {
    const folder = await mkdtemp(join(tmpdir(), 'uploads-'))
    t.teardown(() => rm(folder, { recursive: true }))
    const file = join(folder, 'a-file')
    await writeFile(file, '')
    t.equal(await uploadFolder(folder), folder)
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
