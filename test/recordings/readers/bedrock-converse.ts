/** Reads raw answers of Converse. Of a stream, a line is one event: its type, and its payload. */
import { type Answer, Draft, type Finish, type Raw, type Usage } from '../support/answer.ts'

const FINISHES: Record<string, Finish> = {
  ...{ end_turn: 'stop', stop_sequence: 'stop', tool_use: 'tool_calls', content_filtered: 'content_filter' },
  ...{ guardrail_intervened: 'content_filter', max_tokens: 'length', model_context_window_exceeded: 'length' },
}

export function readBedrockConverse(body: string, isStream: boolean): Answer {
  const draft = new Draft()
  if (!isStream) {
    const answer: Raw = JSON.parse(body)
    if (answer.output) end(answer.output.message.content, answer.stopReason, answer.usage, draft)
    return draft.answer()
  }
  const blocks: Raw[] = []
  let reason = ''
  let usage: Raw
  for (const line of body.split('\n').filter(Boolean)) {
    const event: Raw = JSON.parse(line)
    const { contentBlockIndex: at, start, delta } = event.contentBlockStart ?? event.contentBlockDelta ?? {}
    if (start?.toolUse) blocks[at] = { toolUse: { ...start.toolUse, input: '' } }
    else if (delta) {
      blocks[at] ??= {}
      grow(blocks[at], delta)
    }
    reason = event.messageStop?.stopReason ?? reason
    usage = event.metadata?.usage ?? usage
    if (Object.keys(event)[0]!.endsWith('Exception')) draft.failed = true
  }
  end(blocks.filter(Boolean), reason, usage, draft)
  return draft.answer()
}

function grow(block: Raw, { text, reasoningContent: thought, toolUse, citation }: Raw): void {
  if (text !== undefined) block.text = (block.text ?? '') + text
  if (thought?.text !== undefined) {
    block.reasoningContent ??= { reasoningText: { text: '' } }
    block.reasoningContent.reasoningText.text += thought.text
  }
  if (toolUse) block.toolUse.input += toolUse.input
  if (citation) block.citations = [...(block.citations ?? []), citation]
}

function end(blocks: Raw[], reason: string, usage: Raw, draft: Draft): void {
  for (const { text, reasoningContent, toolUse, citationsContent, citations } of blocks) {
    draft.text += text ?? citationsContent?.content.map((part: Raw) => part.text).join('') ?? ''
    draft.reasoning += reasoningContent?.reasoningText?.text ?? ''
    if (toolUse) draft.call(toolUse.toolUseId, toolUse.name, toolUse.input)
    for (const { location } of citationsContent?.citations ?? citations ?? [])
      if (location?.web?.url) draft.urls.add(location.web.url)
  }
  draft.finish = FINISHES[reason] ?? null
  if (usage) draft.usage = usageOf(usage)
}

function usageOf(usage: Raw): Usage {
  const { inputTokens, outputTokens, cacheReadInputTokens: cached = 0, cacheWriteInputTokens: written = 0 } = usage
  const hour = (usage.cacheDetails ?? []).find(({ ttl }: Raw) => ttl === '1h')
  const input = inputTokens + cached + written
  return { input, output: outputTokens, cached, written, written1h: hour?.inputTokens ?? 0, reasoning: 0 }
}
