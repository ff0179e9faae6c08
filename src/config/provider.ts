/** A provider's file → the provider as requests use it: address, credentials, wires. */
import { isPublicHost } from '../core/address.ts'
import type { Op } from '../core/ops.ts'
import type { DataPolicy } from '../core/provider-settings.ts'
import type { Provider, Translator } from '../core/translator.ts'
import type { Egress } from '../lib/egress.ts'
import { unknownName } from '../lib/nearest.ts'
import { urlOf } from '../lib/url.ts'
import { HEADER_VALUE, linkAuth, linkCredentials, schemeOf, travelsSafely } from './auth.ts'
import { linkProviderEgress } from './egress.ts'
import type { ConfigFile } from './file.ts'
import type { Registries } from './registries.ts'
import type { ProviderFile } from './schemas/provider.ts'
import { sentSecrets } from './sent-secrets.ts'
import type { Path, Source } from './source.ts'

/** Names that providers' files may use. */
export type WireRegistries = Pick<Registries, 'wires' | 'operations'>

/** `egress` is that of gateway.yaml. Throws a ConfigError. */
export function linkProvider(
  file: ConfigFile<ProviderFile>,
  registries: WireRegistries,
  egress: Egress | undefined,
): Provider {
  const { source, value } = file
  const { timeouts } = value
  if (Object.keys(value.wires).length === 0) {
    throw source.error(`expected at least one operation, such as "${Object.keys(registries.operations)[0]}"`, ['wires'])
  }
  return Object.freeze({
    id: value.provider,
    name: value.name,
    organizations: organizations(value),
    baseUrl: baseUrl(file),
    auth: linkAuth(file),
    headers: headers(file),
    sentSecrets: sentSecrets(file),
    passHeaders: passHeaders(file, registries),
    ...(value.native_fields && { nativeFields: value.native_fields }),
    ...(value.native_tools && { nativeTools: value.native_tools }),
    credentials: linkCredentials(file),
    variables: file.variables,
    wires: linkWires(source, value.wires, registries, ['wires']),
    quirks: { ...value.quirks, drop: new Set(value.quirks.drop), clamp: clamps(file) },
    timeouts: {
      connect: timeouts.connect,
      firstEvent: timeouts.first_event,
      idle: timeouts.idle,
      total: timeouts.total,
    },
    concurrency: value.concurrency,
    egress: linkProviderEgress(file, egress),
    priority: value.priority,
    dataPolicy: dataPolicy(value),
    inlineMedia: value.inline_media ?? isInside(value.base_url),
    reasoningReplay: value.reasoning_replay,
    errorCodes: value.error_codes && new Map(Object.entries(value.error_codes)),
    errorPhrases:
      value.error_phrases && Object.entries(value.error_phrases).map(([text, name]) => [text.toLowerCase(), name]),
  })
}

const DEFAULT_ORGANIZATION = ['default']
/** Undefined for all. Engines of the operator's own cost nothing, so that credits do not limit their use. */
function organizations(value: ProviderFile): Provider['organizations'] {
  const { organizations: named, discover, models, open } = value
  if (named !== undefined) return named === 'all' ? undefined : named
  const servesAnyName = models === 'open' || open !== undefined
  return discover || (servesAnyName && schemeOf(value) === 'none') ? DEFAULT_ORGANIZATION : undefined
}

/** Whether a provider may be in the operator's own network, where addresses mean other places than outside. */
function isInside(address: string): boolean {
  const url = urlOf(address)
  return url === undefined || url.protocol !== 'https:' || !isPublicHost(url.hostname)
}

const dataPolicy = ({ data_policy: said }: ProviderFile): DataPolicy => ({
  trainsOnData: said?.trains_on_data,
  logsPrompts: said?.logs_prompts,
  retention: said?.retention,
  headquarters: said?.headquarters,
  soc2: said?.soc2,
  iso27001: said?.iso27001,
  gdpr: said?.gdpr,
})

function baseUrl({ source, value }: ConfigFile<ProviderFile>): string {
  const refuse = (why: string) => source.error(why, ['base_url'])
  const url = urlOf(value.base_url)
  if (!url) throw refuse('expected an address such as "https://api.acme.example/v1"')
  if (!travelsSafely(url) && !(url.protocol === 'http:' && value.allow_http)) {
    throw refuse(
      `expected "https://": "${url.hostname}" is not a loopback address; ` +
        'for plain http within your own network add the line "allow_http: true"',
    )
  }
  if (url.username || url.password) throw refuse('an address must not contain a credential; put it under "auth"')
  if (url.search || url.hash) throw refuse('expected an address without "?" and "#": wires append their paths to it')
  return value.base_url.replace(/(?<!\/)\/+$/, '')
}

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

function headers({ source, value }: ConfigFile<ProviderFile>): Record<string, string> {
  const fixed: Record<string, string> = {}
  for (const [name, text] of Object.entries(value.headers)) {
    const path = ['headers', name]
    if (!HEADER_NAME.test(name)) throw source.error(`expected a header name, got ${JSON.stringify(name)}`, path, 'key')
    if (!HEADER_VALUE.test(text)) throw source.error('a header value contains a character that cannot be sent', path)
    if (Object.hasOwn(fixed, name.toLowerCase())) throw source.error(`the header "${name}" occurs twice`, path, 'key')
    fixed[name.toLowerCase()] = text
  }
  return fixed
}

/** Accepts only headers that one of the wires passes on. */
function passHeaders({ source, value }: ConfigFile<ProviderFile>, { wires }: WireRegistries): Provider['passHeaders'] {
  const known = new Set([...wires.values()].flatMap(({ native }) => native?.headers ?? []))
  const unknown = Object.keys(value.pass_headers).find(name => !known.has(name))
  if (unknown === undefined) return value.pass_headers
  throw source.error(unknownName('client header', unknown, known), ['pass_headers', unknown], 'key')
}

function clamps({ source, value }: ConfigFile<ProviderFile>): Provider['quirks']['clamp'] {
  const bounds: Record<string, readonly [number, number]> = {}
  for (const [field, [low, high]] of Object.entries(value.quirks.clamp)) {
    if (low! > high!) throw source.error('expected the lower bound before the upper', ['quirks', 'clamp', field])
    bounds[field] = [low!, high!]
  }
  return bounds
}

/** Wires of `written` by operation; `at` is its path in the file. Throws a ConfigError. */
export function linkWires(
  source: Source,
  written: Readonly<Record<string, string>>,
  registries: WireRegistries,
  at: Path,
): Map<Op, Translator> {
  const { wires, operations } = registries
  const linked = new Map<Op, Translator>()
  for (const [op, wire] of Object.entries(written)) {
    const path = [...at, op]
    if (!Object.hasOwn(operations, op)) {
      throw source.error(unknownName('operation', op, Object.keys(operations)), path, 'key')
    }
    const translator = wires.get(wire)
    if (!translator) throw source.error(unknownName('wire', wire, wires.keys()), path)
    if (translator.op !== op) throw source.error(`wire "${wire}" speaks "${translator.op}", not "${op}"`, path)
    linked.set(translator.op, translator)
  }
  return linked
}
