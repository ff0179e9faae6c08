/** Says of each key of an imported file what became of it. Values are never repeated: they may be secrets. */

export type Fate = 'carried' | 'changed' | 'not carried'

/** A key of the input, such as `model_list[0].litellm_params.model`. */
export interface Line {
  readonly key: string
  readonly fate: Fate
  readonly note: string
}

/** Advice for keys that are not carried, by their beginning; the longest one counts. */
const ADVICE: Readonly<Record<string, string>> = {
  '': 'there is no such setting',
  'general_settings.master_key': 'the gateway makes an admin token and a first key at its start',
  'general_settings.database_url': 'set stores.postgres in gateway.yaml',
  'general_settings.alerting': 'see docs/telemetry.md for metrics and alerts',
  'litellm_settings.num_retries': 'set attempts of the filter route',
  'litellm_settings.request_timeout': 'set timeouts in each manifest',
  'litellm_settings.drop_params': 'fields that only tune are dropped; see docs/contract.md',
  'litellm_settings.cache': 'projects turn it on: gatewayctl projects update --cache-ttl',
  'litellm_settings.callbacks': 'set telemetry in gateway.yaml',
  'litellm_settings.success_callback': 'set telemetry in gateway.yaml',
  'litellm_settings.failure_callback': 'set telemetry in gateway.yaml',
  'litellm_settings.max_budget': 'set a limit of each key: gatewayctl keys update --limit',
  'litellm_settings.budget_duration': 'set the period of the limit: gatewayctl keys update --limit-period',
  'router_settings.routing_strategy': 'deployments are drawn by weight; see docs/virtual-models.md',
  'router_settings.num_retries': 'set attempts of the filter route',
  'router_settings.timeout': 'set timeouts in each manifest',
  'router_settings.allowed_fails': 'circuits open by themselves; see docs/routing.md',
  'router_settings.cooldown_time': 'circuits open by themselves; see docs/routing.md',
  'router_settings.redis': 'set stores.redis in gateway.yaml',
  environment_variables: 'set it in the environment of the gateway',
  guardrails: 'write a filter; see docs/extending.md',
  credential_list: 'its keys and addresses stand in the manifests of the models that name it',
  include: 'import each file by itself',
  'general_settings.pass_through_endpoints': 'there are no other paths; clients call the endpoints of docs/contract.md',
}

/** Notes by key, which become one line for each key of the input. */
export class Report {
  readonly #notes = new Map<string, Omit<Line, 'key'>>()

  carried(key: string, note = ''): void {
    this.#notes.set(key, { fate: 'carried', note })
  }

  changed(key: string, note: string): void {
    this.#notes.set(key, { fate: 'changed', note })
  }

  lost(key: string, note: string): void {
    this.#notes.set(key, { fate: 'not carried', note })
  }

  /** A line for each key of `input`. A note about a section holds for all that is in it. */
  lines(input: unknown): Line[] {
    return keysOf(input, '').map(key => ({ key, ...(this.#noteOf(key) ?? adviceOf(key)) }))
  }

  #noteOf(key: string): Omit<Line, 'key'> | undefined {
    for (let part = key; part; part = part.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')) {
      const note = this.#notes.get(part)
      if (note) return note
      if (part.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '') === part) return undefined
    }
    return undefined
  }
}

function adviceOf(key: string): Omit<Line, 'key'> {
  const best = Object.keys(ADVICE)
    .filter(start => key.startsWith(start))
    .sort((a, b) => b.length - a.length)[0]!
  return { fate: 'not carried', note: ADVICE[best]! }
}

/** Keys of values that hold no further keys. */
function keysOf(value: unknown, at: string): string[] {
  const isSection = (one: unknown) => typeof one === 'object' && one !== null
  if (Array.isArray(value)) {
    return value.some(isSection) ? value.flatMap((one, index) => keysOf(one, `${at}[${index}]`)) : [at]
  }
  if (!isSection(value) || Object.keys(value as object).length === 0) return at ? [at] : []
  return Object.entries(value as object).flatMap(([key, one]) => keysOf(one, at ? `${at}.${key}` : key))
}
