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
  model_list: 'there is no such setting of a deployment; see docs/reference/configuration.md for those of manifests',
  general_settings: 'there is no such setting; see docs/reference/configuration.md',
  'general_settings.master_key': 'the gateway makes an admin token and a first key at its start',
  'general_settings.database_': 'set stores.postgres in gateway.yaml',
  'general_settings.store_model_in_db': 'models stand in files, which may change while the gateway runs',
  'general_settings.alerting': 'see docs/telemetry.md for metrics and alerts',
  'general_settings.max_parallel_requests': 'set a limit: gatewayctl keys update --concurrency',
  'general_settings.global_max_parallel_requests': 'set in_flight of the filter admission',
  'general_settings.enable_jwt_auth': 'set auth.jwt in gateway.yaml; see docs/jwt.md',
  'general_settings.litellm_jwtauth': 'set auth.jwt in gateway.yaml; see docs/jwt.md',
  'general_settings.custom_auth': 'write a filter, or set auth.jwt; see docs/extending.md',
  'general_settings.ui_access_mode': 'the page at /ui takes the admin token; see docs/ui.md',
  'general_settings.pass_through_endpoints': 'there are no other paths; clients call the endpoints of docs/contract.md',
  'litellm_settings.num_retries': 'set attempts of the filter route',
  'litellm_settings.request_timeout': 'set timeouts in each manifest',
  'litellm_settings.drop_params': 'fields that only tune are dropped; see docs/contract.md',
  'litellm_settings.cache': 'projects turn it on: gatewayctl projects update --cache-ttl; Redis is stores.redis',
  'litellm_settings.callbacks': 'set telemetry in gateway.yaml; metrics stand at /metrics of the admin listener',
  'litellm_settings.success_callback': 'set telemetry in gateway.yaml',
  'litellm_settings.failure_callback': 'set telemetry in gateway.yaml',
  'litellm_settings.langfuse': 'set telemetry.otlp in gateway.yaml, which Langfuse takes',
  'litellm_settings.json_logs': 'the log is JSON lines',
  'litellm_settings.turn_off_message_logging': 'content is kept only where a project asks for it',
  'litellm_settings.redact': 'content is kept only where a project asks for it',
  'litellm_settings.ssl_verify': 'set egress.ca in gateway.yaml to trust a certificate authority of your own',
  'litellm_settings.max_budget': 'set a limit of each key: gatewayctl keys update --limit',
  'litellm_settings.budget_duration': 'set the period of the limit: gatewayctl keys update --limit-period',
  'litellm_settings.default_internal_user_params': 'set limits of each member: gatewayctl members update',
  'litellm_settings.default_team_settings': 'telemetry is one for all projects; set it in gateway.yaml',
  'litellm_settings.default_key_generate_params': 'set limits of each key: gatewayctl keys create --limit',
  'litellm_settings.upperbound_key_generate_params': 'set limits of each project: gatewayctl projects update',
  'litellm_settings.allowed_fails': 'circuits open by themselves; see docs/routing.md',
  'litellm_settings.cooldown_time': 'circuits open by themselves; see docs/routing.md',
  'router_settings.routing_strategy': 'deployments are drawn by weight; see docs/virtual-models.md',
  'router_settings.num_retries': 'set attempts of the filter route',
  'router_settings.timeout': 'set timeouts in each manifest',
  'router_settings.stream_timeout': 'set timeouts in each manifest',
  'router_settings.retry_after': 'waits follow what the provider says; see docs/routing.md',
  'router_settings.retry_policy': 'set attempts of the filter route',
  'router_settings.model_group_retry_policy': 'set attempts of the filter route',
  'router_settings.allowed_fails': 'circuits open by themselves; see docs/routing.md',
  'router_settings.cooldown_time': 'circuits open by themselves; see docs/routing.md',
  'router_settings.disable_cooldowns': 'circuits open by themselves; see docs/routing.md',
  'router_settings.enable_pre_call_checks': 'targets without room for the prompt are always skipped',
  'router_settings.redis': 'set stores.redis in gateway.yaml',
  environment_variables: 'set it in the environment of the gateway',
  guardrails: 'write a filter; see docs/extending.md',
  mcp_servers: 'the gateway is an MCP server and calls none; see docs/mcp.md',
  credential_list: 'no model names it',
  include: 'import each file by itself',
  callback_settings: 'set telemetry in gateway.yaml',
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
