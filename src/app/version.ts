/** The version of the package. */
import { readFileSync } from 'node:fs'

/** Two levels above `src/app`, and above `dist/src`, which contains the bundle. */
const FILE = new URL('../../package.json', import.meta.url)

export const { version } = JSON.parse(readFileSync(FILE, 'utf8')) as { readonly version: string }
