/** Rules of gateway.yaml that set limits: which requests each is for, and by what it counts (docs/rate-limits.md). */

import { type Labels, NO_LABELS } from '../../core/policy.ts'
import type { Principal } from '../../core/ports.ts'
import { type Infer, s } from '../../core/schema.ts'
import { type RateKind, type RateLimits, rateKinds } from '../../limits/kinds.ts'
import { listOf, matcher } from '../../limits/names.ts'
import { type Limit, limitsOf, type Subject } from './limit.ts'

const names = s.optional(s.either(s.string({ minLength: 1 }), s.array(s.string({ minLength: 1 }), { minItems: 1 })))
const most = s.optional(s.integer({ minimum: 1, maximum: 1_000_000_000 }))
const by = s.string({ pattern: '^(gateway|org|project|member|key|session|end_user|model|endpoint|tag:.+)$' })

/** Limits for the requests of which all of `match` is true. Names may hold `*`. */
export const limitRule = s.object({
  match: s.optional(
    s.object({
      model: names,
      orgs: names,
      projects: names,
      keys: names,
      members: names,
      endpoint: names,
      /** `key=value`. */
      tags: names,
      end_user: names,
    }),
  ),
  /** Subjects to count apart; without it, each thing of the kinds that `match` names, else each organization. */
  by: s.optional(s.either(by, s.array(by, { minItems: 1 }))),
  ...(Object.fromEntries(rateKinds.map(kind => [kind, most])) as { [K in RateKind]: typeof most }),
  on_limit: s.optional(s.either(s.enum('refuse', 'notify'), s.object({ use: s.string({ minLength: 1 }) }))),
})
type Written = Infer<typeof limitRule>

/** Facts of a request once its model is known. */
export interface RequestFacts {
  /** Names of its model, the canonical one first. */
  readonly models: readonly string[]
  readonly labels: Labels
}

/** A rule, ready to be asked. */
export interface LimitRule {
  /** Whether requests of the caller at the endpoint can be meant. */
  isFor(caller: Principal, endpoint: string): boolean
  /** False where it depends on what a request holds. */
  readonly isStatic: boolean
  /** Limits for one request; none where it is not meant. Without facts, only for a static rule. */
  limitsFor(caller: Principal, endpoint: string, facts?: RequestFacts): readonly Limit[]
}

type Match = NonNullable<Written['match']>

/** Kinds of subjects that parts of `match` stand for. */
const namedBy: Readonly<Record<keyof Match, string | undefined>> = {
  orgs: 'org',
  projects: 'project',
  keys: 'key',
  members: 'member',
  model: 'model',
  endpoint: undefined,
  end_user: 'end_user',
  tags: undefined,
}

/** Compiles a rule. Its counters go on across reloads for as long as `match` and `by` stay the same. */
export function compileRule(written: Written): LimitRule {
  const { match = {}, by: given, ...limits } = written
  const kinds = given === undefined ? kindsNamedBy(match) : listOf(given)
  const id = JSON.stringify([match, kinds])
  const [orgs, projects, keys, members] = [match.orgs, match.projects, match.keys, match.members].map(matcher)
  const [endpoints, models] = [match.endpoint, match.model].map(matcher)
  const [tags, endUsers] = [match.tags, match.end_user].map(matcher)
  const ofModel = models !== undefined || kinds.includes('model')
  const ofLabels = kinds.some(kind => kind === 'end_user' || kind.startsWith('tag:'))
  const ofRequest = ofModel || ofLabels || tags !== undefined || endUsers !== undefined
  return {
    isStatic: !ofRequest,
    isFor: ({ orgId, orgName, projectId, keyId, keyName, member }, endpoint) =>
      (!orgs || orgs(orgId) || orgs(orgName)) &&
      (!projects || projects(projectId)) &&
      (!keys || keys(keyId) || keys(keyName)) &&
      (!members || (member !== undefined && members(member.id))) &&
      (!endpoints || endpoints(endpoint)),
    limitsFor(caller, endpoint, facts) {
      const model = facts && (models ? facts.models.find(models) : facts.models[0])
      if (ofModel && model === undefined) return []
      if (tags && ![...(facts?.labels.tags ?? [])].some(([key, value]) => tags(`${key}=${value}`))) return []
      if (endUsers && !(facts?.labels.endUser !== undefined && endUsers(facts.labels.endUser))) return []
      const subject = subjectOf(id, kinds, partsOf(caller, endpoint, model, facts?.labels))
      return subject ? limitsOf(limits as RateLimits, subject) : []
    },
  }
}

/** Kinds of subjects that a rule counts apart by default: those that it names, else organizations. */
function kindsNamedBy(match: Match): readonly string[] {
  const named = (Object.keys(match) as (keyof Match)[]).flatMap(part =>
    match[part] === undefined ? [] : (namedBy[part] ?? []),
  )
  const tagged = match.tags === undefined ? [] : listOf(match.tags).map(tag => `tag:${tag.split('=', 1)[0]}`)
  const all = [...named, ...new Set(tagged)]
  return all.length > 0 ? all : ['org']
}

/** Id and label of each kind of subject that a request has. */
type SubjectParts = Readonly<Record<string, readonly [id: string, label: string] | undefined>>

const partsOf = (
  caller: Principal,
  endpoint: string,
  model: string | undefined,
  { endUser, tags }: Labels = NO_LABELS,
): SubjectParts => ({
  ...Object.fromEntries(
    [...tags].map(([key, value]) => [`tag:${key}`, [`${caller.orgId} ${value}`, `tag "${key}=${value}"`] as const]),
  ),
  // Names of end users are the organization's own.
  end_user: endUser === undefined ? undefined : [`${caller.orgId} ${endUser}`, `end user "${endUser}"`],
  gateway: ['', 'this gateway'],
  org: [caller.orgId, `organization "${caller.orgName}"`],
  project: [caller.projectId, `project "${caller.projectId}"`],
  member: caller.member && [caller.member.id, `member "${caller.member.id}"`],
  key: [caller.keyId, `key "${caller.keyName}"`],
  session: caller.session && [caller.session.id, `session "${caller.session.id}"`],
  model: model === undefined ? undefined : [model, `model "${model}"`],
  endpoint: [endpoint, `endpoint "${endpoint}"`],
})

/** Undefined where the request has not all that the rule counts by. Marks names that clients choose: their counters stand apart. */
function subjectOf(rule: string, kinds: readonly string[], parts: SubjectParts): Subject | undefined {
  const found = kinds.map(kind => parts[kind])
  if (found.includes(undefined)) return undefined
  const ids = found.map(part => part![0])
  const isNamed = kinds.some(kind => /^(?:end_user$|session$|tag:)/.test(kind))
  return {
    kind: kinds.map(kind => kind.replace(/[^\w:.-]/g, '_')).join('-'),
    id: `${isNamed ? `named ${parts.org![0]} ` : ''}rule ${rule} ${JSON.stringify(ids)}`,
    label: found.map(part => part![1]).join(' and '),
  }
}
