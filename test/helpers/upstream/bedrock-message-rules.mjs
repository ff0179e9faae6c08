/** What the Converse API refuses of messages and the blocks in them. */
import { signatureOf } from './answer.mjs'
import { is, refuse, refusesPrefill, thinksByDefault, words } from './bedrock-refusal.mjs'

const blocks = {
  user: words('text image document video audio toolResult cachePoint guardContent searchResult'),
  assistant: words('text toolUse reasoningContent cachePoint citationsContent'),
  system: words('text cachePoint guardContent'),
  result: words('text json image document video searchResult'),
}
const formats = {
  image: words('png jpeg gif webp'),
  document: words('pdf csv doc docx xls xlsx html txt md'),
  video: words('mkv mov mp4 webm flv mpeg mpg wmv three_gp'),
  audio: words('mp3 opus wav aac flac mp4 ogg mkv mka x-aac m4a mpeg mpga pcm webm'),
}
const magic = { png: '\x89PNG', jpeg: '\xff\xd8\xff', gif: 'GIF8', webp: 'RIFF', pdf: '%PDF' }
const base64 = /^[A-Za-z0-9+/]+={0,2}$/

export function checkMessages({ messages, system = [], additionalModelRequestFields: more }, model) {
  if (!Array.isArray(messages) || messages.length === 0) refuse('A conversation must hold a message.')
  const names = new Set()
  for (const block of system) checkBlock(block, blocks.system, 'system', names, model)
  let open = []
  messages.forEach(({ role, content }, i) => {
    const at = `messages.${i}`
    if (role !== (i % 2 ? 'assistant' : 'user')) {
      refuse('A conversation must start with a user message and alternate between user and assistant.')
    }
    if (!Array.isArray(content) || content.length === 0) refuse(`The content field at ${at} is empty.`)
    for (const block of content) checkBlock(block, blocks[role], at, names, model)
    if (content.some(({ document }) => document) && content.every(({ text }) => text === undefined)) {
      refuse(`${at}: a document needs a text block beside it.`)
    }
    open = checkResults(content, open, at)
  })
  if (open.length > 0) refuse(`messages: calls without results: ${open.join(', ')}.`)
  checkEnd(messages, model)
  checkLoop(messages, more?.thinking, model)
}

function checkEnd(messages, model) {
  const last = messages.at(-1)
  if (last.role === 'assistant') {
    if (!is.claude(model) || refusesPrefill.test(model)) refuse('The conversation must end with a user message.')
    const { text } = last.content.at(-1)
    if (text !== undefined && text !== text.trimEnd()) refuse('final assistant content cannot end with whitespace')
  }
}

/** A loop of Claude's tool calls is one turn: under a budget it begins with a thought, without thinking it holds none. */
function checkLoop(messages, thinking, model) {
  const words = messages.findLastIndex(({ role, content }) => role === 'user' && !content.some(b => b.toolResult))
  const loop = messages.slice(words + 1).filter(({ role }) => role === 'assistant')
  if (loop.length === 0 || messages.at(-1).role === 'assistant') return
  if (thinking?.type === 'enabled' && !loop[0].content[0].reasoningContent) {
    refuse('Expected `thinking` or `redacted_thinking`, but found `tool_use`.')
  }
  const off = thinking === undefined ? !thinksByDefault.test(model) : thinking.type === 'disabled'
  if (is.claude(model) && off && loop.some(({ content }) => content.some(b => b.reasoningContent))) {
    refuse('When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`.')
  }
}

function checkBlock(block, allowed, at, names, model) {
  const [key, ...others] = Object.keys(block)
  if (others.length > 0) refuse(`${at}: a block must have one key, not ${key}, ${others.join(', ')}.`)
  if (!allowed.has(key)) refuse(`${at}: a block of ${key} is not allowed here.`)
  const value = block[key]
  if (key === 'text' && !value.trim()) refuse(`The text field in the ContentBlock object at ${at} is blank.`)
  if (formats[key]) checkMedium(key, value, at)
  if (key === 'document') {
    if (!/^(?!.* {2})[a-zA-Z0-9 \-()[\]]{1,200}$/.test(value.name)) refuse(`${at}: the document name ${value.name}`)
    if (names.size === names.add(value.name).size) refuse(`${at}: duplicate document name ${value.name}`)
  }
  if (key === 'toolUse' && (typeof value.input !== 'object' || value.input === null || Array.isArray(value.input))) {
    refuse(`${at}: toolUse.input must be an object.`)
  }
  if (key === 'toolResult') {
    if (!Array.isArray(value.content) || value.content.length === 0) refuse(`${at}: toolResult.content is empty.`)
    for (const inner of value.content) checkBlock(inner, blocks.result, at, names, model)
  }
  if (key === 'reasoningContent') checkReasoning(value, at, model)
}

function checkMedium(key, { format, source }, at) {
  if (!formats[key].has(format)) refuse(`${at}: the ${key} format ${format} is not known.`)
  const bytes = source?.bytes ?? ''
  if (!base64.test(bytes)) refuse(`${at}: ${key}.source.bytes is not base64.`)
  const head = Buffer.from(bytes.slice(0, 24), 'base64').toString('latin1')
  if (magic[format] && !head.startsWith(magic[format])) refuse(`${at}: the ${key} is no ${format}.`)
}

function checkReasoning({ reasoningText: shown, redactedContent: hidden }, at, model) {
  if (hidden !== undefined) {
    if (!base64.test(hidden)) refuse(`${at}: redactedContent is not base64.`)
    return
  }
  if (!is.claude(model)) refuse(`${at}: messages cannot contain reasoning content with this model.`)
  if (shown.signature !== signatureOf(shown.text)) refuse(`${at}: Invalid \`signature\` in \`thinking\` block`)
}

/** Every call is answered in the very next message, before anything else is said, and nothing but calls is. */
function checkResults(content, open, at) {
  const results = content.flatMap(({ toolResult }) => (toolResult ? [toolResult.toolUseId] : []))
  if ([...results].sort().join() !== [...open].sort().join()) {
    refuse(`${at}: the results (${results.join(', ')}) must be those of the previous calls (${open.join(', ')}).`)
  }
  const other = content.findIndex(({ toolResult, cachePoint }) => !toolResult && !cachePoint)
  if (other >= 0 && content.slice(other).some(({ toolResult }) => toolResult)) refuse(`${at}: results must come first`)
  return content.flatMap(({ toolUse }) => (toolUse ? [toolUse.toolUseId] : []))
}
