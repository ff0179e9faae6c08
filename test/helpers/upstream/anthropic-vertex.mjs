/** Claude on Vertex AI: the Messages wire at an address that names the model and whether the answer streams. */
import { anthropic } from './anthropic.mjs'
import { Refusal } from './rules.mjs'

const path =
  /(?:\/v1)?(?:\/projects\/[^/]+\/locations\/[^/]+)?\/publishers\/anthropic\/models\/(?<model>[^/:]+):(?:(?<stream>streamRawPredict)|rawPredict)$/

function refuse(message, status = 400) {
  throw new Refusal(status, { type: 'error', error: { type: 'invalid_request_error', message } })
}

/** @type {import('./server.mjs').Wire} */
export const anthropicVertex = {
  ...anthropic,
  name: 'anthropic-vertex',
  path,

  check(headers, body, keys, url) {
    if (headers.authorization === undefined) refuse('Request is missing required authentication credential.', 401)
    if (typeof body !== 'object' || body === null) refuse('The request body is not valid JSON')
    const { model, stream } = path.exec(url.pathname).groups
    const { anthropic_version: version, ...rest } = body
    if (version !== 'vertex-2023-10-16') refuse('anthropic_version: Field required')
    if (rest.model !== undefined) refuse('model: Extra inputs are not permitted')
    if ((rest.stream === true) !== (stream !== undefined)) refuse('stream: does not fit the method')
    if (rest.output_config?.format) refuse('output_config.format: Extra inputs are not permitted')
    if (rest.tools?.some(tool => tool.strict !== undefined)) refuse('tools.strict: Extra inputs are not permitted')
    const plain = { 'anthropic-version': '2023-06-01', ...headers }
    anthropic.check(plain, { model: decodeURIComponent(model), ...rest }, keys, url)
  },
}
