/** The version of the package. */
import { readFileSync } from 'node:fs'

/** `package.json` stands at the root of the package, one level above `src` and two above `dist/src`. */
function read(): string {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      return (JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as { version: string }).version
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown
    }
  }
  throw new Error('package.json is missing')
}

export const version = read()
