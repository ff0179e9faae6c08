/** `gateway init`: copies the packaged configuration into a folder for editing. */
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { PACKAGE } from '../config/locate.ts'
import { makeFolder } from '../stores/make-folder.ts'

const FOLDERS = ['config', 'providers.d']

/** Returns the notice for the operator. Throws an Error, before writing anything, when one of the files exists. */
export async function copyConfig(folder: string): Promise<string> {
  const files = (await Promise.all(FOLDERS.map(filesBelow))).flat()
  const there = files.filter(file => existsSync(join(folder, file)))
  if (there.length > 0) {
    const names =
      there.length > 3 ? `${there.slice(0, 3).join(', ')} and ${there.length - 3} more files` : there.join(', ')
    throw new Error(`${names} already exist in ${folder}; nothing was copied. Move them away, or use another folder.`)
  }
  for (const file of files) {
    makeFolder(dirname(join(folder, file)))
    // Copies the text without the mode: packages may be installed read-only.
    await writeFile(join(folder, file), await readFile(join(PACKAGE, file)), { flag: 'wx' })
  }
  return next
}

const next = `Copied the packaged configuration:

  config/gateway.yaml   listeners, database, filters
  config/models.d       models
  providers.d           one file for each provider

Next:

  npx model-gateway           starts with these files, and the same data in ./data; saved changes are live at once
  npx model-gateway --help    says what else there is
`

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(join(PACKAGE, folder), { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => relative(PACKAGE, join(entry.parentPath, entry.name)))
}
