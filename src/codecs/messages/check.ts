/** Validates a Messages body piece by piece, so that one error names several issues. */

import { type Schema, s } from '../../core/schema.ts'
import type { Json } from '../../json/json.ts'
import { errors } from '../../lib/error.ts'
import { type Validator, validator } from '../validate.ts'
import { anyBlock, blockSchemas, customTool, fields, type MessagesRequest, message, setting, tool } from './schema.ts'
import { toolsIn } from './tools-in.ts'

const MAX_ISSUES = 12

const compile = (schemas: Iterable<readonly [string, Schema<unknown>]>) =>
  new Map([...schemas].map(([name, schema]) => [name, validator(schema)]))

const isObject = validator(s.open({}))
const ofField = compile(Object.entries(fields))
const required = Object.entries(fields).flatMap(([name, schema]) => ('optional' in schema ? [] : [name]))
const ofBlock = compile(blockSchemas)
const ofAnyBlock = validator(anyBlock)
const ofMessage = validator(message)
const ofSetting = validator(setting)
const ofTool = validator(tool)
const ofCustomTool = validator(customTool)

/** Compiles every schema ahead of the first requests. */
export function prepare(): void {
  const pieces = [ofAnyBlock, ofMessage, ofSetting, ofTool, ofCustomTool]
  const validators = [isObject, ...ofField.values(), ...ofBlock.values(), ...pieces]
  for (const validator of validators) validator.prepare()
}

/** The body with all lists checked; throws a 400 that names up to twelve issues, the first as its `param`. */
export function checkRequest(body: unknown): MessagesRequest {
  const issues = new Issues()
  if (issues.add(isObject, body, '')) {
    const { messages, system, tools } = fieldsOf(body as Json, issues)
    if (Array.isArray(messages)) {
      each(messages, 'messages', issues, (turn, at) => {
        if (isSetting(turn)) return
        if (issues.add(ofMessage, turn, at)) checkBlocks((turn as Json).content, `${at}.content`, issues)
      })
    }
    checkBlocks(system, 'system', issues)
    for (const { tool, at } of toolsIn({ tools, system, messages })) checkTool(tool, at, issues)
  }
  issues.refuse()
  return body as MessagesRequest
}

/** The valid fields. */
function fieldsOf(body: Json, issues: Issues): Json {
  const right: Json = {}
  for (const [name, validator] of ofField) {
    if (!Object.hasOwn(body, name)) {
      if (required.includes(name)) issues.note(name, 'is required')
    } else if (issues.add(validator, body[name], name)) right[name] = body[name]
  }
  return right
}

const isSetting = (turn: unknown): boolean =>
  (turn as Json | null)?.content === undefined && ofSetting.issue(turn) === undefined

function checkTool(tool: unknown, at: string, issues: Issues): void {
  if (!issues.add(ofTool, tool, at)) return
  const { type } = tool as Json
  if (type === undefined || type === null || type === 'custom') issues.add(ofCustomTool, tool, at)
}

function checkBlocks(content: unknown, at: string, issues: Issues): void {
  if (Array.isArray(content)) each(content, at, issues, checkBlock)
}

function checkBlock(block: unknown, at: string, issues: Issues): void {
  if (!issues.add(ofAnyBlock, block, at)) return
  const { type, source, content } = block as { type: string; source?: unknown; content?: unknown }
  const validator = ofBlock.get(type)
  if (!validator || !issues.add(validator, block, at)) return
  if (type === 'tool_result' || type === 'search_result') checkBlocks(content, `${at}.content`, issues)
  if (type === 'document') checkBlocks((source as Json).content, `${at}.source.content`, issues)
}

type Check = (value: unknown, at: string, issues: Issues) => void

function each(list: readonly unknown[], at: string, issues: Issues, check: Check): void {
  for (let i = 0; i < list.length && !issues.full; i++) check(list[i], `${at}[${i}]`, issues)
}

/** Issues found, up to the limit of an error. */
class Issues {
  readonly #found: { path: string; message: string }[] = []

  get full(): boolean {
    return this.#found.length >= MAX_ISSUES
  }

  /** Returns whether the value at `at` is valid. */
  add(validator: Validator<unknown>, value: unknown, at: string): boolean {
    const issue = validator.issue(value)
    if (!issue) return true
    this.note(issue.path.startsWith('[') || !at || !issue.path ? at + issue.path : `${at}.${issue.path}`, issue.message)
    return false
  }

  note(path: string, message: string): void {
    if (!this.full) this.#found.push({ path, message })
  }

  refuse(): void {
    const [first] = this.#found
    if (!first) return
    const issues = this.#found.map(({ path, message }) => `${path || 'the body'}: ${message}`).join('; ')
    throw errors.invalidParameters(`Invalid request format: ${issues}`, first.path || null)
  }
}
