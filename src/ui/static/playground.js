/** Sends the chat of the playground, and shows its answer and its events as they come. */
const byId = id => document.getElementById(id)
const form = byId('chat')
const turns = byId('turns')
const events = byId('events')
const facts = byId('facts')
/** The conversation as the API takes it. */
let messages = []
let running

function addTurn(role, text) {
  const turn = document.createElement('p')
  const name = document.createElement('strong')
  const content = document.createElement('span')
  name.textContent = `${role}: `
  content.textContent = text
  turn.append(name, content)
  turns.append(turn)
  return content
}

function setRunning(controller) {
  running = controller
  byId('send').disabled = running !== undefined
  byId('stop').disabled = running === undefined
  turns.setAttribute('aria-busy', String(running !== undefined))
}

/** The JSON of each event, and that of an answer without events. */
function read(line, isStream) {
  const text = isStream ? line.replace(/^data: ?/, '') : line
  if ((isStream && !line.startsWith('data:')) || text === '[DONE]') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function factsOf(answer, began, firstAt) {
  const { usage, metadata, choices } = answer
  const seconds = ms => `${(ms / 1000).toFixed(2)} s`
  return [
    metadata && `${metadata.used_provider}/${metadata.used_model}`,
    firstAt && `first token ${seconds(firstAt - began)}`,
    seconds(performance.now() - began),
    usage && `${usage.prompt_tokens} + ${usage.completion_tokens} tokens`,
    usage && (usage.cost === null || usage.cost === undefined ? 'price unknown' : `$${usage.cost}`),
    choices,
  ]
    .filter(Boolean)
    .join(', ')
}

function showFacts(answer, began, firstAt) {
  facts.textContent = factsOf(answer, began, firstAt)
  const id = answer.metadata?.log_id
  if (!id) return
  const link = document.createElement('a')
  link.href = `/ui/requests/${encodeURIComponent(id)}`
  link.textContent = 'its row in the request log'
  facts.append(', ', link)
}

async function send(text) {
  const system = byId('system').value.trim()
  const asked = [...messages, { role: 'user', content: text }]
  const fields = new URLSearchParams({
    csrf: form.elements.csrf.value,
    model: byId('model').value,
    project: byId('project').value,
    parameters: byId('parameters').value,
    messages: JSON.stringify(system ? [{ role: 'system', content: system }, ...asked] : asked),
  })
  addTurn('You', text)
  const shown = addTurn('Model', '')
  const thought = document.createElement('em')
  shown.before(thought)
  events.textContent = ''
  facts.textContent = ''
  const began = performance.now()
  const controller = new AbortController()
  setRunning(controller)
  const answer = {}
  let content = ''
  let firstAt
  let error
  const take = event => {
    if (!event) return
    if (event.error) error = event.error.message
    if (event.usage) answer.usage = event.usage
    if (event.metadata) answer.metadata = event.metadata
    for (const { delta, message } of event.choices ?? []) {
      const piece = delta ?? message ?? {}
      if (piece.content || piece.reasoning_content || piece.reasoning) firstAt ??= performance.now()
      content += piece.content ?? ''
      thought.textContent += piece.reasoning_content ?? piece.reasoning ?? ''
    }
    shown.textContent = content
  }
  try {
    const response = await fetch(form.action, { method: 'POST', body: fields, signal: controller.signal })
    if (response.redirected) throw new Error('the session is over; load this page again to sign in')
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let rest = ''
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      events.append(value)
      rest += value
      if (!isStream) continue
      const lines = rest.split('\n')
      rest = lines.pop()
      for (const line of lines) take(read(line, true))
    }
    if (!isStream) take(read(rest, false))
    if (!response.ok && !error) error = `The gateway answered ${response.status}. Sign in again if the session is over.`
  } catch (thrown) {
    error = thrown.name === 'AbortError' ? 'Stopped.' : `The connection ended: ${thrown.message}`
  }
  setRunning(undefined)
  if (error) shown.append(document.createTextNode(content ? ` (${error})` : error))
  if (content) messages = [...asked, { role: 'assistant', content }]
  showFacts(answer, began, firstAt)
}

form.addEventListener('submit', event => {
  event.preventDefault()
  const text = byId('message').value.trim()
  if (running || !text) return
  byId('message').value = ''
  void send(text)
})
byId('message').addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit()
})
byId('stop').addEventListener('click', () => running?.abort())
byId('anew').addEventListener('click', () => {
  running?.abort()
  messages = []
  turns.replaceChildren()
  events.textContent = ''
  facts.textContent = ''
  byId('message').focus()
})
