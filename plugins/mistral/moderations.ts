/** The wire `mistral.moderations`: texts only, categories of its own (docs/contract.md#moderations). */
import {
  errors,
  type Json,
  type ModerationRequest,
  type ModerationResult,
  type Target,
  type WireRequest,
} from '../../src/plugin.ts'
import { isFlag, isScore, membersOf, moderationWire } from '../shared/moderations.ts'

/** OpenAI's name of each category that it has, too. Those that are missing alone do not flag a text. */
const NAMES: Readonly<Record<string, string>> = {
  sexual: 'sexual',
  hate_and_discrimination: 'hate',
  violence_and_threats: 'violence',
  dangerous_and_criminal_content: 'illicit',
  dangerous: 'illicit',
  criminal: 'illicit',
  selfharm: 'self-harm',
}
const FLAGS = new Set([...Object.keys(NAMES), 'jailbreaking'])

const encode = (request: Readonly<ModerationRequest>, { mapping }: Target): WireRequest => ({
  path: '/moderations',
  body: { model: mapping.externalId, input: textsOf(request) },
})

/** Parts are one text. Throws 400 for an image. */
function textsOf({ input, model }: Readonly<ModerationRequest>): readonly string[] {
  if (typeof input === 'string') return [input]
  const texts: string[] = []
  let isList = true
  for (const one of input) {
    if (typeof one === 'string') texts.push(one)
    else if (one.type === 'text') {
      texts.push(one.text)
      isList = false
    } else throw errors.unsupported(`"${model}" takes no images here; send text.`, 'input')
  }
  return isList ? texts : [texts.join('\n')]
}

function read({ categories, category_scores }: Json): ModerationResult {
  const found = membersOf(categories, isFlag)
  const scores = membersOf(category_scores, isScore)
  return {
    flagged: Object.keys(found).some(name => found[name] && FLAGS.has(name)),
    categories: { ...renamed(found, (a, b) => a || b), ...found },
    category_scores: { ...renamed(scores, Math.max), ...scores },
    category_applied_input_types: {},
  }
}

/** Two of its categories may have one name. */
function renamed<T>(members: Readonly<Record<string, T>>, joined: (a: T, b: T) => T): Record<string, T> {
  const renamed: Record<string, T> = {}
  for (const [name, value] of Object.entries(members)) {
    const to = Object.hasOwn(NAMES, name) ? NAMES[name]! : undefined
    if (to) renamed[to] = Object.hasOwn(renamed, to) ? joined(renamed[to]!, value) : value
  }
  return renamed
}

/** Mistral's Classifiers API, `POST /moderations`. */
export const moderations = moderationWire('mistral.moderations', encode, read)
