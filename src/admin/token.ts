/** The admin token: a file beside the database, created by the first start. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const TOKEN_BYTES = 32
const MIN_TOKEN_CHARACTERS = 16

/**
 * The token in the file at `path`; creates a missing file, readable by its owner only. Throws for a file without a
 * token, because an empty one would admit everyone.
 */
export function adminToken(path: string): string {
  const made = create(path)
  const token = made ?? readFileSync(path, 'utf8').trim()
  if (token.length < MIN_TOKEN_CHARACTERS) {
    throw new Error(
      `${path} holds no admin token (at least ${MIN_TOKEN_CHARACTERS} characters); delete it to get a new one`,
    )
  }
  return token
}

/** Writes the address of the listener, `host:port`, beside the token, so that a command sends the token nowhere else. */
export function writeAddress(tokenFile: string, listen: string): void {
  const reached = listen.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')
  writeFileSync(join(dirname(tokenFile), 'token.address'), `http://${reached}\n`, { mode: 0o600 })
}

/** Undefined when the file exists; two processes that start at once agree on one token. */
function create(path: string): string | undefined {
  mkdirSync(dirname(path), { recursive: true })
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  try {
    writeFileSync(path, `${token}\n`, { flag: 'wx', mode: 0o600 })
    return token
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw thrown
  }
}
