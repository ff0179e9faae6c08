/** What each API of embeddings refuses, so that a translator which sends it fails its test. */
import { knows, Refusal } from './rules.mjs'

const words = text => new Set(text.split(/\s+/))

/** A refusal in the provider's own form. */
class Refused extends Refusal {
  constructor(status, message, body) {
    super(status, { error: { message } })
    this.body = body
  }
}

/** Errors of each provider: OpenAI's, those of validators, and Google's. */
export const faults = {
  openai: (status, message, code = null) => ({
    error: { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param: null, code },
  }),
  mistral: (_status, message) => ({
    object: 'error',
    message,
    type: 'invalid_request_error',
    param: null,
    code: '3051',
  }),
  cohere: (_status, message) => ({ id: 'simulated', message }),
  detail: (_status, message) => ({ detail: message }),
  google: (status, message) => ({
    error: { code: status, message, status: status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL' },
  }),
}

const isText = input => typeof input === 'string' && input !== ''
const isTokens = input => Array.isArray(input) && input.length > 0 && input.every(Number.isInteger)

/** Checks of the bodies, one for each API. `refuse` takes a sentence. */
const checks = {
  openai(body, refuse, allow) {
    allow(body, words('model input encoding_format dimensions user'))
    const inputs = Array.isArray(body.input) && !isTokens(body.input) ? body.input : [body.input]
    if (inputs.length === 0 || inputs.length > 2048) refuse("Invalid 'input': 1 to 2048 inputs")
    if (!inputs.every(isText) && !inputs.every(isTokens)) refuse("'$.input' is invalid. Please check the API reference")
    if (body.dimensions !== undefined && !/embedding-3|test/.test(body.model)) {
      refuse('This model does not support specifying dimensions.')
    }
  },
  mistral(body, refuse, allow) {
    allow(body, words('model input output_dimension output_dtype encoding_format metadata'))
    if (![body.input].flat().every(isText)) refuse('Input should be a valid string')
    if (body.output_dimension !== undefined && !body.model.startsWith('codestral')) {
      refuse('This model does not support output_dimension')
    }
  },
  cohere(body, refuse, allow) {
    allow(
      body,
      words('model input_type texts images inputs embedding_types output_dimension truncate max_tokens priority'),
    )
    if (!words('search_document search_query classification clustering image').has(body.input_type)) {
      refuse('valid input_type must be provided with the provided model')
    }
    if (!Array.isArray(body.texts) || !body.texts.every(isText)) refuse('invalid request: texts must be strings')
    if (body.texts.length > 96) refuse('invalid request: total number of texts must be at most 96')
    if (body.output_dimension !== undefined && ![256, 512, 1024, 1536].includes(body.output_dimension)) {
      refuse('invalid output_dimension')
    }
  },
  voyage(body, refuse, allow) {
    allow(body, words('input model input_type truncation output_dimension output_dtype encoding_format'))
    if (!Array.isArray(body.input) || !body.input.every(isText)) refuse('The input must be a list of strings')
    if (body.input.length > 1000) refuse('The batch size limit is 1000')
    if (body.encoding_format != null && body.encoding_format !== 'base64') {
      refuse("Value 'float' provided for argument 'encoding_format' is not acceptable: it must be 'base64' or null")
    }
  },
  jina(body, refuse, allow) {
    allow(body, words('model input task dimensions normalized embedding_type late_chunking truncate'))
    if (!Array.isArray(body.input) || !body.input.every(isText)) refuse('[input] must be a list of strings')
    if (body.embedding_type !== undefined && !words('float base64 binary ubinary').has(body.embedding_type)) {
      refuse('[embedding_type] is unknown')
    }
  },
  google(body, refuse, allow, url) {
    const [, model, method] = /([^/:]+):(\w+)$/.exec(url.pathname)
    if (method === 'batchEmbedContents') {
      allow(body, words('requests'))
      if (body.requests.length > 100) refuse('at most 100 requests can be in one batch')
      for (const request of body.requests) {
        allow(request, words('model content taskType title outputDimensionality'))
        if (request.model !== `models/${model}`) refuse('the model of a request differs from that of the address')
        if (!isText(request.content.parts[0].text)) refuse('content must not be empty')
      }
    } else if (method === 'predict') {
      allow(body, words('instances parameters'))
      allow(body.parameters ?? {}, words('outputDimensionality autoTruncate'))
      for (const instance of body.instances) allow(instance, words('content task_type title'))
      if (!body.instances.every(({ content }) => isText(content))) refuse('content must not be empty')
    } else {
      allow(body, words('content embedContentConfig'))
      allow(body.embedContentConfig ?? {}, words('taskType title outputDimensionality autoTruncate'))
      if (body.content.parts.length !== 1 || !isText(body.content.parts[0].text)) refuse('one text, please')
    }
  },
}

/** The check of one API, in the form that the server calls. */
export const checkOf = (api, fault) => (headers, body, keys, url) => {
  const refuse = (message, status = 400) => {
    throw new Refused(status, message, fault(status, message))
  }
  const allow = (object, allowed) => {
    const unknown = Object.keys(object).find(name => !allowed.has(name))
    if (unknown !== undefined) refuse(`Unknown parameter: '${unknown}'.`, api === 'mistral' ? 422 : 400)
  }
  const given = headers['x-goog-api-key'] ?? /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
  if (!knows(keys, given)) refuse('Incorrect API key provided.', 401)
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) refuse('The content type must be application/json.')
  if (typeof body !== 'object' || body === null) refuse('The body is no JSON.')
  if (api !== 'google' && typeof body.model !== 'string') refuse('you must provide a model parameter')
  checks[api](body, refuse, allow, url)
}
