/** A certificate authority of the test's own, and certificates that it signs. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scope } from './child.ts'

export interface Authority {
  /** For `NODE_EXTRA_CA_CERTS`. */
  readonly path: string
  /** Valid for `days` from now; without them it signs itself. `san` as openssl writes it: `IP:127.0.0.1`. */
  certificate(name: string, san: string, days?: number): { key: Buffer; cert: Buffer }
}

const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** Its files are removed when the test ends. */
export function makeAuthority(t: Scope): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'tls-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  openssl('req', '-x509', ...curve, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=authority')
  return {
    path: join(folder, 'ca.pem'),
    certificate(name, san, days) {
      const [key, cert] = [`${name}.key`, `${name}.pem`]
      const asked = ['req', ...curve, '-keyout', key, '-subj', `/CN=${name}`, '-addext', `subjectAltName=${san}`]
      if (days === undefined) openssl(...asked, '-x509', '-out', cert)
      else {
        openssl(...asked, '-new', '-out', `${name}.csr`)
        const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-copy_extensions', 'copyall']
        openssl('x509', '-req', '-in', `${name}.csr`, ...signed, '-days', String(days), '-out', cert)
      }
      return { key: readFileSync(join(folder, key)), cert: readFileSync(join(folder, cert)) }
    },
  }
}
