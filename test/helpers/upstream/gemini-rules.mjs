/** What the generateContent API refuses, on either surface, so that a translator which sends it fails its test. */
import { signatureOf } from './answer.mjs'
import { knows, Refusal } from './rules.mjs'

const words = text => new Set(text.split(/\s+/))

const fields = words('contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent')
const ownFields = { studio: words('serviceTier store continuationToken'), vertex: words('labels modelArmorConfig') }
const generationFields = words(
  `temperature topP topK candidateCount maxOutputTokens stopSequences responseLogprobs logprobs presencePenalty
  frequencyPenalty seed responseMimeType responseSchema responseJsonSchema responseModalities mediaResolution
  speechConfig thinkingConfig imageConfig`,
)
const dataFields = words(
  `text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse`,
)
const partFields = new Set([...dataFields, 'thought', 'thoughtSignature', 'videoMetadata', 'mediaResolution'])
const toolFields = words('functionDeclarations googleSearch')
const declarationFields = words('name description parameters parametersJsonSchema response responseJsonSchema')
const ranges = { temperature: [0, 2], topP: [0, 1], candidateCount: [1, 8], maxOutputTokens: [1, Number.MAX_VALUE] }
const skipSignature = 'skip_thought_signature_validator'

function refuse(message, status = 400, word = 'INVALID_ARGUMENT', details = undefined) {
  throw new Refusal(status, { error: { code: status, message, status: word, ...(details && { details }) } })
}

function allow(object, allowed, at) {
  for (const name of Object.keys(object)) {
    if (!allowed.has(name))
      refuse(`Invalid JSON payload received. Unknown name "${name}" at '${at}': Cannot find field.`)
  }
}

/** Models of the third generation sign their calls and ask the signatures back. */
export const isSigning = model => /^gemini-(?:[3-9]|\d\d)/.test(model)
/** What the signature of a call is made of. */
export const callText = ({ name, args }) => `${name}:${JSON.stringify(args ?? {})}`

/** @param {Record<string, string | undefined>} headers @param {any} body @param {string[]} keys @param {URL} url */
export function check(headers, body, keys, url) {
  const surface = url.pathname.includes('/publishers/google/') ? 'vertex' : 'studio'
  const model = decodeURIComponent(/\/models\/([^/:]+):/.exec(url.pathname)[1])
  const streams = url.pathname.endsWith(':streamGenerateContent')
  checkKey(surface, headers, keys, url)
  if (streams && url.searchParams.get('alt') !== 'sse') refuse('Without alt=sse a stream is one JSON array.')
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) refuse('The content type must be application/json.')
  if (typeof body !== 'object' || body === null) refuse('Invalid JSON payload received. Unexpected token.')
  if (!isWellFormed(body)) refuse('Invalid JSON payload received. Invalid unicode surrogate pair.')
  allow(body, new Set([...fields, ...ownFields[surface]]), '')
  if (!Array.isArray(body.contents) || body.contents.length === 0) refuse('contents is not specified')
  if (model.startsWith('gemma-') && body.systemInstruction)
    refuse('Developer instruction is not enabled for this model')
  const tiers = ['standard', 'flex', 'priority']
  if (body.serviceTier && !tiers.includes(body.serviceTier)) refuse(`Invalid value at 'service_tier'`)
  for (const label of Object.values(body.labels ?? {})) {
    if (!/^[a-z0-9_-]{0,63}$/.test(label)) refuse(`Invalid label value "${label}"`)
  }
  checkGeneration(body.generationConfig ?? {}, model, streams)
  checkTools(body, surface, model)
  checkTurns(body.contents, surface)
  checkCalls(body.contents, model)
}

function checkKey(surface, headers, keys, url) {
  const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
  const key = headers['x-goog-api-key'] ?? url.searchParams.get('key') ?? undefined
  if (surface === 'vertex') {
    if (!knows(keys, bearer ?? key)) refuse('Request had invalid authentication credentials.', 401, 'UNAUTHENTICATED')
  } else if (!knows(keys, key)) {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }]
    refuse('API key not valid. Please pass a valid API key.', 400, 'INVALID_ARGUMENT', details)
  }
}

const isWellFormed = value =>
  typeof value === 'string'
    ? value.isWellFormed()
    : typeof value !== 'object' || value === null || Object.entries(value).flat().every(isWellFormed)

function checkGeneration(config, model, streams) {
  allow(config, generationFields, 'generation_config')
  for (const [name, [low, high]] of Object.entries(ranges)) {
    if (config[name] !== undefined && !(config[name] >= low && config[name] <= high)) {
      refuse(`${name} must be in the range [${low}, ${high}], got ${config[name]}`)
    }
  }
  if (streams && config.candidateCount > 1) refuse('Multiple candidates is not enabled for streaming.')
  if ((config.responseJsonSchema ?? config.responseSchema) && config.responseMimeType !== 'application/json') {
    refuse('A response schema needs the response mime type application/json')
  }
  if (config.imageConfig && !config.responseModalities?.includes('IMAGE')) refuse('imageConfig needs images')
  if (config.thinkingConfig) checkThinking(config.thinkingConfig, model)
}

function checkThinking({ thinkingLevel: level, thinkingBudget: budget }, model) {
  if (level !== undefined && budget !== undefined) {
    refuse('You can only set only one of thinking budget and thinking level.')
  }
  if (level !== undefined) {
    const isPro = /-pro/.test(model)
    const isNewFlash = /^gemini-(?:3\.[7-9]|flash-latest)/.test(model)
    const levels = isPro || isNewFlash ? ['LOW', 'MEDIUM', 'HIGH'] : ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH']
    if (!isSigning(model)) refuse('Thinking level is not supported for this model.')
    if (!levels.includes(level)) refuse(`Thinking level ${level} is not supported for this model.`)
  }
  if (budget === undefined || budget === -1) return
  const [low, high, off] = /-pro/.test(model)
    ? [128, 32_768, false]
    : /-lite/.test(model)
      ? [512, 24_576, true]
      : [1, 24_576, true]
  if (!((off && budget === 0) || (budget >= low && budget <= high))) {
    refuse(`The thinking budget ${budget} is invalid. Please choose a value between ${low} and ${high}.`)
  }
}

function checkTools({ tools, toolConfig }, surface, model) {
  for (const tool of tools ?? []) allow(tool, toolFields, 'tools')
  const functions = (tools ?? []).flatMap(tool => tool.functionDeclarations ?? [])
  functions.forEach((declared, i) => {
    allow(declared, declarationFields, `function_declarations[${i}]`)
    if (!/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/.test(declared.name)) refuse(`Invalid function name at [${i}]`)
  })
  const calling = toolConfig?.functionCallingConfig
  if (calling && functions.length === 0) refuse('Function calling config is set without function_declarations.')
  const { mode, allowedFunctionNames: names } = calling ?? {}
  if (mode !== undefined && !['AUTO', 'ANY', 'NONE', 'VALIDATED'].includes(mode)) refuse(`Invalid mode "${mode}"`)
  if (names && mode !== 'ANY' && mode !== 'VALIDATED') refuse('allowed_function_names needs mode ANY')
  const stranger = names?.find(name => !functions.some(declared => declared.name === name))
  if (stranger) refuse(`allowed_function_names holds "${stranger}", which is not declared`)

  const search = tools?.find(tool => tool.googleSearch)
  const announced = toolConfig?.includeServerSideToolInvocations
  if (surface === 'vertex' && announced !== undefined) refuse('Unknown name "includeServerSideToolInvocations"')
  if (surface === 'studio' && search?.googleSearch.excludeDomains) refuse('Unknown name "excludeDomains"')
  if (!search || functions.length === 0) return
  if (!isSigning(model)) refuse('Tool use with function calling is unsupported')
  if (mode === undefined || mode === 'AUTO') refuse('Built-in tools beside functions need mode VALIDATED')
  if (surface === 'studio' && announced !== true) refuse('Please enable include_server_side_tool_invocations')
}

/** The real API joins equal roles in a row; a translator that relies on it splits results, so it is refused. */
function checkTurns(contents, surface) {
  contents.forEach(({ role, parts }, i) => {
    if (role !== (i % 2 === 0 ? 'user' : 'model')) refuse(`contents[${i}]: roles must alternate, beginning with user`)
    if (!Array.isArray(parts) || parts.length === 0) refuse(`contents[${i}].parts must not be empty.`)
    for (const [j, part] of parts.entries()) checkPart(part, `contents[${i}].parts[${j}]`, surface)
  })
  if (contents.at(-1).role !== 'user') refuse('The last turn must be of the user.')
}

function checkPart(part, at, surface) {
  allow(part, partFields, at)
  const data = Object.keys(part).filter(name => dataFields.has(name))
  if (data.length !== 1) refuse(`${at}: required oneof field 'data' must have one initialized field`)
  const { inlineData, fileData, functionCall: call, functionResponse: result } = part
  if (inlineData && !(/^[a-z]+\/[\w.+-]+$/.test(inlineData.mimeType ?? '') && isBase64(inlineData.data))) {
    refuse(`${at}.inline_data: needs a mime type and base64 data`)
  }
  if (fileData && !(fileData.fileUri && (fileData.mimeType || surface === 'studio'))) {
    refuse(`${at}.file_data: needs a URI and a mime type`)
  }
  if (surface === 'vertex' && (call ?? result)?.id !== undefined) refuse(`${at}: Unknown name "id"`)
  if (call && !isObject(call.args)) refuse(`${at}.function_call.args: must be an object`)
  if (result && !(result.name && isObject(result.response))) {
    refuse(`${at}.function_response: needs a name, and a response that is an object`)
  }
}

const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value)
const isBase64 = text => typeof text === 'string' && /^[A-Za-z0-9+/_-]+={0,2}$/.test(text)

/** Each turn of calls is answered in the next turn, one result for each, in their order; signatures are the calls' own. */
function checkCalls(contents, model) {
  let calls = []
  contents.forEach(({ parts }, i) => {
    const results = parts.flatMap(part => (part.functionResponse ? [part.functionResponse] : []))
    const pairs = results.length === calls.length && results.every(({ name, id }, j) => isFor(calls[j], name, id))
    if (!pairs) {
      refuse(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    }
    const calling = parts.filter(part => part.functionCall)
    for (const [j, part] of calling.entries()) checkSignature(part, j, model, i)
    parts.forEach((part, j) => {
      const { text, thought, thoughtSignature: given } = part
      if (text === undefined || given === undefined || thought) return
      const signed = text === '' ? (parts[j - 1]?.text ?? '') : text
      if (given !== signatureOf(signed)) refuse(`contents[${i}].parts[${j}]: Thought signature is not valid`)
    })
    calls = calling.map(part => part.functionCall)
  })
  if (calls.length > 0) refuse('Function calls must be followed by function responses.')
}

const isFor = (call, name, id) => call.name === name && call.id === id

function checkSignature({ functionCall: call, thoughtSignature: given }, j, model, i) {
  const at = `Function call \`${call.name}\` in the ${i}. content block`
  if (given === undefined) {
    if (j === 0 && isSigning(model)) refuse(`${at} is missing a thought_signature.`)
  } else if (given === skipSignature ? !(isSigning(model) && j === 0) : given !== signatureOf(callText(call))) {
    refuse(`${at} has a thought_signature that is not valid.`)
  }
}
