/** `gateway init`: writes a configuration for editing, which extends the packaged catalogue. */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { CONFIG_FILE, PACKAGE } from '../config/locate.ts'
import { makeFolder } from '../stores/make-folder.ts'

/** Files by their paths below the package. */
const FILES = { [CONFIG_FILE]: CONFIG_FILE, 'config/init/acme.yaml': 'providers.d/acme.yaml' }
const SCHEMA = '$schema=./schema/'

/** Returns the notice for the operator. Throws an Error, before writing anything, when one of the files exists. */
export async function copyConfig(folder: string): Promise<string> {
  const there = Object.values(FILES).filter(file => existsSync(join(folder, file)))
  if (there.length > 0) {
    const verb = there.length > 1 ? 'exist' : 'exists'
    const names = there.join(' and ')
    throw new Error(`${names} already ${verb} in ${folder}; nothing was copied. Move that away, or use another folder.`)
  }
  for (const [from, to] of Object.entries(FILES)) {
    const target = join(folder, to)
    makeFolder(dirname(target))
    // Editors find the schemas in the package.
    const schemas = relative(dirname(target), join(PACKAGE, 'config/schema'))
    const text = (await readFile(join(PACKAGE, from), 'utf8')).replace(SCHEMA, `$schema=${schemas}/`)
    // Copies the text without the mode: packages may be installed read-only.
    await writeFile(target, text, { flag: 'wx' })
  }
  return next
}

const next = `Copied two files:

  config/gateway.yaml   listeners, database, filters; its catalogue extends that of the package
  providers.d/acme.yaml an example of a provider, not enabled

Models and providers of the package, and their prices, come with its updates. A file in config/models.d or providers.d
adds to them, or replaces the one of the same name.

Next:

  npx model-gateway           starts with these files, and the same data in ./data; saved changes are live at once
  npx model-gateway --help    says what else there is
`
