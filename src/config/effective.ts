/** The configuration in force: a printable copy, and the differences that need a restart. */
import { isDeepStrictEqual } from 'node:util'
import { MASK } from '../secrets/mask.ts'
import { redactConfig } from '../secrets/redact.ts'
import { shown } from './file.ts'
import { type ConfigFiles, outsideValues } from './load.ts'
import type { GatewayFile } from './schemas/gateway.ts'
import type { ProviderFile } from './schemas/provider.ts'
import { maskSent } from './sent-secrets.ts'

/**
 * All values with defaults, times in milliseconds and sizes in bytes; every secret as `***`, or as the reference to the
 * command or secret manager that it comes from.
 */
export function effectiveConfig(files: ConfigFiles): Record<string, unknown> {
  return redactConfig({
    version: files.version,
    gateway: withoutAlertPaths(withoutOtlp(shown(files.gateway))),
    models: files.models.flatMap(file => shown(file).models),
    aliases: Object.fromEntries(files.models.flatMap(file => Object.entries(shown(file).aliases))),
    virtual_models: files.routes.flatMap(file => shown(file).virtual_models),
    rules: files.routes.flatMap(file => shown(file).rules),
    providers: files.providers.map(file => withoutSent(shown(file))),
  })
}

/** The references to commands and secret managers, each once, in the order of their names. */
export const referencesIn = (files: ConfigFiles): string[] =>
  [...new Set(outsideValues(files).map(({ name }) => `\${${name}}`))].sort()

/** A manifest whose headers and defaults show no credential that is written in the file itself. */
function withoutSent(file: ProviderFile): object {
  const { headers, quirks } = file
  return { ...file, headers: maskSent(headers), quirks: { ...quirks, default: maskSent(quirks.default) } }
}

/** The settings with no header of the collector that may be a credential. */
function withoutOtlp(file: GatewayFile): GatewayFile {
  const { otlp } = file.telemetry
  return { ...file, telemetry: { ...file.telemetry, otlp: { ...otlp, headers: maskSent(otlp.headers) } } }
}

/** The settings without the paths of Slack's addresses, which let their holder write to a channel. */
const withoutAlertPaths = (file: GatewayFile): GatewayFile => ({
  ...file,
  alerts: file.alerts.map(({ url, ...alert }) => {
    if (alert.format !== 'slack' || url === undefined || !URL.canParse(url)) return { ...alert, url }
    return { ...alert, url: `${new URL(url).origin}/${MASK}` }
  }),
})

/** Fields of two files that are read only at start, and differ, such as `server.listen`. */
export function staticDifferences(a: GatewayFile, b: GatewayFile): string[] {
  const [old, given] = [a, b].map(({ jobs: { blobs }, ...file }) => ({ ...file, jobs: { blobs } }))
  return (['server', 'stores', 'telemetry', 'jobs'] as const).flatMap(section => {
    const before: Record<string, unknown> = old![section]
    const after: Record<string, unknown> = given![section]
    return [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .filter(key => !isDeepStrictEqual(before[key], after[key]))
      .map(key => `${section}.${key}`)
  })
}
