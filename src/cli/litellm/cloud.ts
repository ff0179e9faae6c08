/** Addresses and credentials of manifests, from the parameters of a deployment. */
import { redactText } from '../../secrets/redact.ts'
import { baseOf, isServerless, withoutSlashes } from './providers.ts'
import { isSection, type Section, textOf } from './sections.ts'
import type { Variables } from './variables.ts'

/** The place and the parameters that a manifest is made for. */
interface Place {
  readonly id: string
  readonly provider: string
  readonly params: Section
  /** Packaged. */
  readonly manifest: Section
  readonly variables: Variables
}

const VERTEX = /^(?:google-vertex|vertex-)/
const NOWHERE = ':-https://no-address-set.invalid'

/** Members of a manifest that say where its provider is and how it is called. */
export function addressOf(place: Place): Section {
  const { id, provider, params, manifest, variables } = place
  const given = textOf(params.api_base) ?? textOf(params.base_url) ?? textOf(params.aws_bedrock_runtime_endpoint)
  const own = provider.startsWith('azure') ? given?.replace(/\?api-version=[^&#]*$/, '') : given
  const ofCloud = cloudBase(place, own)
  if (ofCloud) return { base_url: ofCloud, ...(!ofCloud.startsWith('https:') && { allow_http: true }) }
  if (own === undefined && provider === 'azure') {
    return {
      base_url: baseOf(provider, variables.reference('os.environ/AZURE_API_BASE', '', NOWHERE)),
      allow_http: true,
    }
  }
  if (own === undefined) {
    for (const [, name] of String(manifest.base_url).matchAll(/\$\{(\w+):-(?:https:\/\/)?no-/g))
      variables.toSet.set(name!, `the address of ${id}`)
    const isOpen = /^(?:http:|\$)/.test(String(manifest.base_url))
    return { base_url: manifest.base_url, ...(isOpen && { allow_http: true }) }
  }
  if (isPlain(own)) return { base_url: baseOf(provider, own), ...(own.startsWith('http:') && { allow_http: true }) }
  return { base_url: baseOf(provider, variables.reference(own, `${id}_api_base`, NOWHERE)), allow_http: true }
}

const isPlain = (address: string) =>
  URL.canParse(address) && /^https?:\/\/[^?#@$]+$/.test(address) && redactText(address) === address

/** The address of a region of Amazon, or of a project of Google; undefined where the packaged one serves. */
function cloudBase({ id, provider, params, variables }: Place, own: string | undefined): string | undefined {
  const origin = () =>
    own !== undefined && isPlain(own) ? withoutSlashes(own) : own && variables.reference(own, `${id}_api_base`, NOWHERE)
  if (provider.startsWith('aws-')) {
    if (own !== undefined) return origin()
    const host = provider === 'aws-bedrock' ? 'bedrock-runtime' : 'bedrock-agent-runtime'
    return `https://${host}.${regionOf(params, variables)}.amazonaws.com`
  }
  if (!VERTEX.test(provider)) return undefined
  const [project, location] = [
    params.vertex_project ?? params.vertex_ai_project,
    params.vertex_location ?? params.vertex_ai_location,
  ].map(textOf)
  if (project === undefined && location === undefined && own === undefined) return undefined
  const place = variables.plain(location ?? 'us-central1', `${id}_location`, ':-us-central1')
  const host = origin() ?? `https://${place === 'global' ? '' : `${place}-`}aiplatform.googleapis.com`
  if (/\/v1\/projects\//.test(host)) return host
  const name = variables.plain(project ?? 'os.environ/GOOGLE_CLOUD_PROJECT', `${id}_project`, ':-no-project-set')
  return `${host}/v1/projects/${name}/locations/${place}${provider === 'vertex-openapi' ? '/endpoints/openapi' : ''}`
}

const regionOf = (params: Section, variables: Variables): string => {
  const written = textOf(params.aws_region_name) ?? 'os.environ/AWS_REGION'
  return /^[a-z0-9-]{1,64}$/.test(written) ? written : variables.reference(written, 'aws_region', ':-us-east-1')
}

/** The `auth` of a manifest. */
export function authOf(place: Place): Section {
  const { id, provider, params, manifest, variables } = place
  const auth = manifest.auth as Section
  const key = textOf(params.api_key) ?? textOf(params.aws_bearer_token_bedrock)
  if (provider.startsWith('aws-') && key === undefined) return amazonAuth(place)
  if (VERTEX.test(provider)) return googleAuth(place)
  const token = textOf(params.azure_ad_token)
  if (provider === 'azure' && token !== undefined) {
    return { scheme: 'bearer', secret: variables.reference(token, `${id}_token`) }
  }
  if (key === undefined) {
    const name = /^\$\{(\w+)\}$/.exec(String(auth.secret ?? ''))?.[1]
    if (name) variables.toSet.set(name, `the credential of ${id}`)
    return auth
  }
  const secret = variables.reference(key, `${id}_api_key`)
  const isBearer = auth.scheme === 'none' || isServerless(textOf(params.api_base) ?? '')
  return isBearer ? { scheme: 'bearer', secret } : { ...auth, secret }
}

function amazonAuth({ params, variables, id }: Place): Section {
  const base = { scheme: 'aws-sigv4', region: regionOf(params, variables) }
  const [access, secret, token] = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'].map(key =>
    textOf(params[key]),
  )
  if (access !== undefined && secret !== undefined) {
    const parts = [access, secret, ...(token === undefined ? [] : [token])].map((part, index) =>
      variables.reference(part, `${id}_${['access_key_id', 'secret_access_key', 'session_token'][index]}`),
    )
    return { ...base, secret: parts.join(':') }
  }
  const profile = textOf(params.aws_profile_name)
  if (profile !== undefined)
    return { ...base, source: 'default', profile: variables.plain(profile, `${id}_profile`, ':-default') }
  const note = 'unless a profile or a role of the machine has keys'
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) variables.toSet.set(name, note)
  return { ...base, source: 'default' }
}

function googleAuth({ params, variables, id, manifest }: Place): Section {
  const given = params.vertex_credentials ?? params.vertex_ai_credentials
  const written = isSection(given) ? JSON.stringify(given) : textOf(given)
  const auth = manifest.auth as Section
  if (written === undefined) {
    variables.toSet.set('GOOGLE_APPLICATION_CREDENTIALS_JSON', 'the JSON of the key file of a service account')
    return auth
  }
  const secret = variables.reference(written, `${id}_credentials`)
  variables.toSet.set(/\w+/.exec(secret)![0], 'the JSON of the key file of a service account, not its path')
  return { ...auth, secret }
}
