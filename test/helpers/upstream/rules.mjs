/** What every provider refuses, whatever its wire: foreign headers and wrong credentials. */

/** An answer that a real provider would give to a bad request. */
export class Refusal extends Error {
  constructor(status, body) {
    super(body.error.message)
    this.status = status
    this.body = body
  }
}

const foreign =
  /^(cookie|forwarded|x-forwarded-.*|x-real-ip|via|proxy-.*|te|trailer|upgrade|keep-alive|x-gateway-.*|origin|referer)$/
/** How the gateway's own keys begin: seen here, a client's credential was passed on. */
const clientKey = /^(Bearer )?(mgw_|ek_)/

/**
 * Names of the headers that a gateway must keep to itself: the client's, and those of one hop.
 * @param {import('node:http').IncomingHttpHeaders} headers
 */
export function violationsOf(headers) {
  const found = Object.keys(headers).filter(name => foreign.test(name) || clientKey.test(String(headers[name])))
  if (headers.authorization !== undefined && headers['x-api-key'] !== undefined) found.push('authorization + x-api-key')
  return found
}

/** @returns {boolean} whether `given` is one of `keys`; everything is, when there are none */
export const knows = (keys, given) => keys.length === 0 || (given !== undefined && keys.includes(given))
