/** `providerOptions` of a call, a message, a part or a tool. */
import { isObject, type Json, objectIn } from '../../json/json.ts'

type CacheControl = { type: 'ephemeral'; ttl?: '5m' | '1h' }

/** The gateway's own options in a request, and its provider metadata in answers. */
export const OWN = 'gateway'

/** Options by namespace; empty where they are missing or not an object. */
export const optionsIn = ({ providerOptions: options }: Json): Json => objectIn(options)

/** Returns the options that an earlier answer stored on its part. */
export function ownOf(holder: Json): Json {
  const own = optionsIn(holder)[OWN]
  return objectIn(own)
}

/** Anthropic's cache mark; undefined where there is none, or one of another type. */
export function cacheControlOf(holder: Json): CacheControl | undefined {
  const { anthropic } = optionsIn(holder)
  const control = isObject(anthropic) ? (anthropic.cacheControl ?? anthropic.cache_control) : undefined
  if (!isObject(control) || control.type !== 'ephemeral') return undefined
  const { ttl } = control
  return ttl === '5m' || ttl === '1h' ? { type: 'ephemeral', ttl } : { type: 'ephemeral' }
}

/** Fields of a chat request that the namespace of the gateway must not set. */
const FIXED = new Set(['model', 'messages', 'stream', 'stream_options'])

/** Returns the chat fields from the gateway's own namespace. Unknown fields are ignored there. */
export const chatFieldsOf = (body: Json): Json =>
  Object.fromEntries(Object.entries(ownOf(body)).filter(([name]) => !FIXED.has(name)))

/** The namespaces of providers; undefined where there are none. */
export function providersOf(body: Json): Record<string, Json> | undefined {
  const others: Record<string, Json> = {}
  for (const [name, own] of Object.entries(optionsIn(body))) if (name !== OWN && isObject(own)) others[name] = own
  return Object.keys(others).length > 0 ? others : undefined
}
