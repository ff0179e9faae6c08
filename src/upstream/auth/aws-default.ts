/**
 * Keys as Amazon's own tools find them: the environment, profiles of `~/.aws` and the roles that these name, a token of
 * Kubernetes, a container's role, the machine's role. No single sign-on, and no process that would be started.
 */
import { join } from 'node:path'
import type { Auth } from '../../core/provider-settings.ts'
import type { Grant } from './access-token.ts'
import { awsSigv4 } from './aws-sigv4.ts'
import { type CredentialSources, missing } from './credential-sources.ts'
import { type EndpointAnswer, fieldsOf, formRequest } from './endpoint.ts'

type AwsAuth = Extract<Auth, { scheme: 'aws-sigv4' }>

const STS_MS = 10_000
/** Outside Amazon's cloud nothing answers there. */
const METADATA_MS = 1_000
const CONTAINER = 'http://169.254.170.2'
const MACHINE = 'http://169.254.169.254'
/** Keys without an end are read again after this: they may have changed. */
const READ_AGAIN_S = 300
/** Profiles that name one another. */
const MAX_DEPTH = 4

/** Selects keys by profile, and the region of an assumed role. Without `profile`, the SDKs' default chain applies. */
interface AwsKeysRequest extends Pick<AwsAuth, 'region' | 'profile'> {
  /** Unix milliseconds. */
  readonly now: number
}

/** `ID:SECRET[:SESSION]`. Rejects with a GatewayError that names what is missing, and shows nothing of a key. */
export async function findAwsKeys(request: AwsKeysRequest, at: CredentialSources): Promise<Grant> {
  const { env } = at
  const profile = request.profile ?? (env.AWS_PROFILE || undefined)
  if (profile !== undefined) return new Search(request, at).profile(profile)
  const search = new Search(request, at)
  const given = search.environment()
  if (given) return given
  if (await search.has('default')) return search.profile('default')
  if (env.AWS_WEB_IDENTITY_TOKEN_FILE && env.AWS_ROLE_ARN) {
    return search.webIdentity(env.AWS_ROLE_ARN, env.AWS_WEB_IDENTITY_TOKEN_FILE)
  }
  return (await search.container()) ?? search.machine()
}

class Search {
  readonly #request: AwsKeysRequest
  readonly #at: CredentialSources
  #profiles: Promise<ReadonlyMap<string, Profile>> | undefined

  constructor(request: AwsKeysRequest, at: CredentialSources) {
    this.#request = request
    this.#at = at
  }

  environment(): Grant | undefined {
    const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: session } = this.#at.env
    return id && secret ? keys({ id, secret, session, seconds: READ_AGAIN_S }) : undefined
  }

  async has(name: string): Promise<boolean> {
    return (await this.#read()).has(name)
  }

  async profile(name: string, depth = 0): Promise<Grant> {
    const profile = (await this.#read()).get(name)
    if (!profile) throw missing(`no profile "${name}" in ~/.aws/credentials or ~/.aws/config`)
    if (depth === MAX_DEPTH) throw missing(`the profiles around "${name}" name one another`)
    const { role_arn: role, web_identity_token_file: file } = profile
    if (role && file) return this.webIdentity(role, file)
    if (role) return this.#assume(role, await this.#sourceOf(name, profile, depth), profile.external_id)
    const { aws_access_key_id: id, aws_secret_access_key: secret, aws_session_token: session } = profile
    if (id && secret) return keys({ id, secret, session, seconds: READ_AGAIN_S })
    const other = ['sso_session', 'sso_start_url', 'credential_process'].find(key => profile[key])
    throw missing(
      `the profile "${name}" has ${other ? `"${other}", which is not supported` : 'no "aws_access_key_id"'}; ` +
        'it needs "aws_access_key_id" and "aws_secret_access_key", or "role_arn"',
    )
  }

  /** The keys that a role is taken with. */
  async #sourceOf(name: string, profile: Profile, depth: number): Promise<Grant> {
    const { source_profile: source, credential_source: place } = profile
    if (source === name) {
      const { aws_access_key_id: id, aws_secret_access_key: secret, aws_session_token: session } = profile
      if (id && secret) return keys({ id, secret, session, seconds: READ_AGAIN_S })
    } else if (source) return this.profile(source, depth + 1)
    const found =
      place === 'Environment'
        ? this.environment()
        : place === 'EcsContainer'
          ? await this.container()
          : place === 'Ec2InstanceMetadata'
            ? await this.machine()
            : undefined
    if (!found) throw missing(`the profile "${name}" has a "role_arn" without keys of a "source_profile"`)
    return found
  }

  async container(): Promise<Grant | undefined> {
    const { env } = this.#at
    const full = env.AWS_CONTAINER_CREDENTIALS_FULL_URI
    const relative = env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI
    if (!full && !relative) return undefined
    const file = env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
    const token = file ? (await this.#at.read(file))?.trim() : env.AWS_CONTAINER_AUTHORIZATION_TOKEN
    const headers = token ? { authorization: token } : {}
    const answer = await this.#at.call(full || `${CONTAINER}${relative}`, { headers, deadlineMs: METADATA_MS })
    return this.#keysOf(answer, "the container's role")
  }

  async machine(): Promise<Grant> {
    const { env, call } = this.#at
    const nowhere = 'none in AWS_ACCESS_KEY_ID, ~/.aws or the role of this machine'
    if (env.AWS_EC2_METADATA_DISABLED === 'true') throw missing(nowhere)
    const base = `${env.AWS_EC2_METADATA_SERVICE_ENDPOINT || MACHINE}/latest`.replace(/([^:/])\/+/g, '$1/')
    const read = async (path: string, token: string) =>
      call(`${base}${path}`, { headers: { 'x-aws-ec2-metadata-token': token }, deadlineMs: METADATA_MS })
    const opened = await call(`${base}/api/token`, {
      method: 'PUT',
      headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
      deadlineMs: METADATA_MS,
    }).catch(() => undefined)
    if (opened?.status !== 200) throw missing(nowhere)
    const roles = '/meta-data/iam/security-credentials/'
    const [role = ''] = (await read(roles, opened.text)).text.trim().split('\n')
    if (!/^[\w+=,.@-]{1,128}$/.test(role)) throw missing('this machine has no role')
    return this.#keysOf(await read(roles + role, opened.text), "the machine's role")
  }

  async webIdentity(role: string, file: string): Promise<Grant> {
    const token = (await this.#at.read(file))?.trim()
    if (!token) throw missing(`the file "${file}" holds no token`)
    return this.#callSts({ Action: 'AssumeRoleWithWebIdentity', RoleArn: role, WebIdentityToken: token })
  }

  #assume(role: string, by: Grant, externalId: string | undefined): Promise<Grant> {
    return this.#callSts({ Action: 'AssumeRole', RoleArn: role, ...(externalId && { ExternalId: externalId }) }, by)
  }

  async #callSts(fields: Readonly<Record<string, string>>, by?: Grant): Promise<Grant> {
    const { region, now } = this.#request
    const { env, call } = this.#at
    const base = env.AWS_ENDPOINT_URL_STS || `https://sts.${region}.amazonaws.com`
    const form = formRequest({ Version: '2011-06-15', RoleSessionName: 'model-gateway', ...fields })
    const headers = Object.entries(form.headers ?? {}).flat()
    const method = 'POST' as const
    const out = { method, baseUrl: base.replace(/\/$/, ''), path: '/', headers, body: form.body ?? '' }
    if (by) {
      const auth: AwsAuth = { scheme: 'aws-sigv4', region, service: 'sts' }
      await awsSigv4(out, auth, { id: '', source: 'platform', secret: by.token, fingerprint: '' }, () => now)
    }
    const pairs = headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]!] as const] : []))
    const url = `${out.baseUrl}/`
    const { status, text } = await call(url, { ...form, headers: Object.fromEntries(pairs), deadlineMs: STS_MS })
    const [id, secret, session, end] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration'].map(name =>
      within(text, name),
    )
    if (status !== 200 || !id || !secret) {
      throw missing(`AWS STS answered with status ${status}${within(text, 'Code') ? ` (${within(text, 'Code')})` : ''}`)
    }
    return keys({ id, secret, session, seconds: this.#left(end) })
  }

  #keysOf({ status, text }: EndpointAnswer, whose: string): Grant {
    const { AccessKeyId: id, SecretAccessKey: secret, Token: session, Expiration: end } = fieldsOf(text)
    if (status !== 200 || typeof id !== 'string' || typeof secret !== 'string') {
      throw missing(`${whose} gave no keys (status ${status})`)
    }
    return keys({ id, secret, session: textOf(session), seconds: this.#left(textOf(end)) })
  }

  /** Seconds until that date. */
  #left(end: string | undefined): number {
    const at = Date.parse(end ?? '')
    return Number.isNaN(at) ? READ_AGAIN_S : Math.max(0, (at - this.#request.now) / 1000)
  }

  #read(): Promise<ReadonlyMap<string, Profile>> {
    this.#profiles ??= readProfiles(this.#at)
    return this.#profiles
  }
}

type Profile = Readonly<Record<string, string | undefined>>

/** Both files; of a key that stands in both, the one among the credentials counts. */
async function readProfiles({ env, home, read }: CredentialSources): Promise<ReadonlyMap<string, Profile>> {
  const config = await read(env.AWS_CONFIG_FILE || join(home, '.aws', 'config'))
  const credentials = await read(env.AWS_SHARED_CREDENTIALS_FILE || join(home, '.aws', 'credentials'))
  const profiles = new Map<string, Profile>()
  for (const text of [config, credentials]) {
    let profile: Record<string, string | undefined> = {}
    for (const line of (text ?? '').split(/\r?\n/)) {
      const section = /^\s*\[(.*)\]/.exec(line)?.[1]?.trim()
      if (section !== undefined) {
        const name = section.replace(/^profile\s+/, '')
        profile = { ...profiles.get(name) }
        profiles.set(name, profile)
      } else if (!/^\s*[#;]/.test(line)) {
        const sign = line.indexOf('=')
        if (sign > 0) profile[line.slice(0, sign).trim()] = line.slice(sign + 1).trim()
      }
    }
  }
  return profiles
}

const keys = (given: { id: string; secret: string; session: string | undefined; seconds: number }): Grant => ({
  token: [given.id, given.secret, ...(given.session ? [given.session] : [])].join(':'),
  seconds: given.seconds,
})

/** The text of the first element of that name. */
function within(xml: string, name: string): string | undefined {
  const start = xml.indexOf(`<${name}>`)
  const end = start < 0 ? -1 : xml.indexOf('<', start + 1)
  return end < 0 ? undefined : xml.slice(start + name.length + 2, end)
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
