/** Advises about settings of LiteLLM that files of ours do not have. */

/** Beginnings of keys by the advice for those that are not carried. Those of models begin with `deployment`. */
const STARTS: Readonly<Record<string, string>> = {
  'there is no such setting of a deployment; see docs/reference/configuration.md for those of manifests': 'deployment',
  'write it in litellm_params and import again: there it is a share of the load':
    'deployment.rpm deployment.tpm deployment.weight',
  'there is no such setting; see docs/reference/configuration.md': 'general_settings',
  'write it in defaults of a virtual model, as the API takes it':
    'deployment.parallel_tool_calls deployment.service_tier deployment.tool deployment.modalities deployment.audio',
  'its values count where an alias names their anchor': 'x- _ .',
  'the gateway makes an admin token and a first key at its start': 'general_settings.master_key',
  'set stores.postgres in gateway.yaml': 'general_settings.database_',
  'models stand in files, which may change while the gateway runs': 'general_settings.store_model_in_db',
  'see docs/telemetry.md for metrics and alerts': 'general_settings.alerting',
  'set a limit: gatewayctl keys update --concurrency':
    'general_settings.max_parallel_requests litellm_settings.max_parallel_requests',
  'set in_flight of the filter admission':
    'general_settings.global_max_parallel_requests router_settings.default_max_parallel_requests',
  'set auth.jwt in gateway.yaml; see docs/jwt.md': `
    general_settings.enable_jwt_auth general_settings.litellm_jwtauth general_settings.enable_oauth2
    general_settings.role_`,
  'write a filter, or set auth.jwt; see docs/extending.md': 'general_settings.custom_auth',
  'the page at /ui takes the admin token; see docs/ui.md': 'general_settings.ui_access_mode general_settings.ui',
  'there are no other paths; clients call the endpoints of docs/contract.md':
    'general_settings.pass_through_endpoints deployment.use_in_pass_through',
  'circuits open by themselves; see docs/routing.md': `
    general_settings.background_health_checks general_settings.health_check litellm_settings.allowed_fails
    litellm_settings.cooldown_time router_settings.allowed_fails router_settings.cooldown_time
    router_settings.disable_cooldowns deployment.health_check deployment.cooldown_time deployment.allowed_fails`,
  'see docs/requests.md for what is kept, and how long': `
    general_settings.disable_spend_logs general_settings.maximum_spend_logs_retention
    general_settings.disable_error_logs general_settings.enable_spend_logs`,
  'set it for each project: gatewayctl projects update --content': 'general_settings.store_prompts_in_spend_logs',
  'a charge is written before its answer ends':
    'general_settings.proxy_batch_write_at general_settings.use_redis_transaction_buffer',
  'limits begin again with each of their periods': 'general_settings.proxy_budget_rescheduler',
  'set end_users.header in gateway.yaml; see docs/end-users-and-tags.md': 'general_settings.user_header',
  'set end_users in gateway.yaml; see docs/end-users-and-tags.md': 'general_settings.enforce_user_param',
  'name secrets by reference; see docs/secrets.md':
    'general_settings.key_management general_settings.use_google_kms general_settings.use_azure_key_vault',
  'write rules allow_ip_cidrs: gatewayctl iam create; see docs/contract.md': 'general_settings.allowed_ips',
  'see docs/alerts.md':
    'general_settings.alert general_settings.spend_report_frequency router_settings.alerting_config',
  'bodies have limits; see docs/limits.md': 'general_settings.max_request_size_mb',
  'answers have limits; see docs/limits.md': 'general_settings.max_response_size_mb',
  'providers get headers of the manifest, and none of a client': 'general_settings.forward_client_headers',
  'clients send Authorization, x-api-key, or that of docs/litellm-compat.md':
    'general_settings.litellm_key_header_name',
  'clients name a model; write a rule to choose one (docs/rules.md)': `
    general_settings.completion_model general_settings.embedding_model general_settings.image_generation_model
    general_settings.moderation_model litellm_settings.default_model`,
  'set attempts of the filter route': `
    litellm_settings.num_retries router_settings.num_retries router_settings.retry_policy
    router_settings.model_group_retry_policy router_settings.max_fallbacks general_settings.num_retries
    litellm_settings.max_fallbacks litellm_settings.retry_policy`,
  'set timeouts in each manifest': `
    litellm_settings.request_timeout router_settings.timeout router_settings.stream_timeout
    general_settings.request_timeout`,
  'fields that only tune are dropped; see docs/contract.md': 'litellm_settings.drop_params',
  'projects turn it on: gatewayctl projects update --cache-ttl; Redis is stores.redis': 'litellm_settings.cache',
  'set telemetry in gateway.yaml; metrics stand at /metrics of the admin listener': 'litellm_settings.callbacks',
  'set telemetry in gateway.yaml': `
    litellm_settings.success_callback litellm_settings.failure_callback callback_settings general_settings.otel
    litellm_settings.datadog litellm_settings.langsmith`,
  'set telemetry.otlp in gateway.yaml, which Langfuse takes': 'litellm_settings.langfuse',
  'the log is JSON lines': 'litellm_settings.json_logs',
  'content is kept only where a project asks for it':
    'litellm_settings.turn_off_message_logging litellm_settings.redact litellm_settings.log_raw_request_response',
  'set egress.ca in gateway.yaml to trust a certificate authority of your own': 'litellm_settings.ssl_verify',
  'set a limit of each key: gatewayctl keys update --limit': 'litellm_settings.max_budget general_settings.max_budget',
  'set the period of the limit: gatewayctl keys update --limit-period':
    'litellm_settings.budget_duration general_settings.budget_duration',
  'set limits of each member: gatewayctl members update':
    'litellm_settings.default_internal_user_params litellm_settings.max_internal_user_budget',
  'set limits of each project: gatewayctl projects update; telemetry is one for all of them':
    'litellm_settings.default_team_settings',
  'set limits of each key: gatewayctl keys create --limit': 'litellm_settings.default_key_generate_params',
  'set limits of each project: gatewayctl projects update': `
    litellm_settings.upperbound_key_generate_params litellm_settings.default_team_params
    general_settings.upperbound_key_generate_params general_settings.default_`,
  'what a provider lacks is translated; see docs/contract.md': 'litellm_settings.modify_params',
  'the response cache is of projects; see docs/virtual-models.md': 'litellm_settings.enable_caching_on_provider',
  'set GATEWAY_LOG_LEVEL; see docs/operations.md': `
    litellm_settings.set_verbose router_settings.set_verbose router_settings.debug_level general_settings.set_verbose
    general_settings.debug general_settings.detailed_debug`,
  'nothing is sent home': 'litellm_settings.telemetry general_settings.telemetry',
  'metrics stand at /metrics of the admin listener': 'litellm_settings.service_callback litellm_settings.prometheus',
  'tags are labels of requests; see docs/end-users-and-tags.md': 'litellm_settings.custom_prometheus',
  'export the log: gatewayctl requests export': 'litellm_settings.s3_callback_params',
  'all changes are kept: gatewayctl audit': 'litellm_settings.store_audit_logs',
  'set end_users.default_limit in gateway.yaml; see docs/end-users-and-tags.md':
    'litellm_settings.max_end_user_budget litellm_settings.default_end_user',
  'write rate limits for a tag; see docs/rate-limits.md': 'litellm_settings.tag_budget_config',
  'write a filter; see docs/extending.md':
    'litellm_settings.guardrails guardrails deployment.guardrails policies policy_attachments',
  'write a wire; see docs/extending.md': 'litellm_settings.custom_provider_map',
  'see docs/contract.md for what is checked': 'litellm_settings.enable_json_schema_validation',
  'see docs/telemetry.md': 'litellm_settings.forward_traceparent',
  'GET /v1/models lists what a key may call': 'litellm_settings.public_model_groups',
  'write virtual models; see docs/virtual-models.md': 'litellm_settings.model_alias_map',
  'what is measured decides; see docs/routing.md': 'router_settings.routing_strategy_args',
  'waits follow what the provider says; see docs/routing.md': 'router_settings.retry_after',
  'targets without room for the prompt are always skipped': 'router_settings.enable_pre_call_checks',
  'set stores.redis in gateway.yaml':
    'router_settings.redis general_settings.coordination_redis general_settings.redis router_settings.cache',
  'write targets with when: { tags }; see docs/virtual-models.md':
    'router_settings.enable_tag_filtering router_settings.tag_filtering',
  'projects turn it on: gatewayctl projects update --cache-ttl': 'router_settings.cache_responses',
  'set sticky: session of a virtual model; see docs/virtual-models.md': 'router_settings.optional_pre_call_checks',
  'no limit counts what one provider costs; limit keys, members or projects; see docs/spending-limits.md':
    'router_settings.provider_budget_config',
  'set defaults of each virtual model; see docs/virtual-models.md': 'router_settings.default_litellm_params',
  'set GOOGLE_CLOUD_PROJECT, or vertex_project of each deployment before the import':
    'litellm_settings.vertex default_vertex_config',
  'set it in the environment of the gateway': 'environment_variables',
  'the gateway is an MCP server and calls none; see docs/mcp.md': 'mcp_servers mcp_ litellm_settings.mcp',
  'no model names it': 'credential_list',
  'import each file by itself': 'include',
  'models and providers have names; none has an id': 'deployment.id',
  'write rules allow_models: gatewayctl iam create; see docs/contract.md': 'deployment.access_groups deployment.team_',
  'write a virtual model of the deployments of each region; see docs/virtual-models.md': 'deployment.region_name',
  'write rpm at the credential in the manifest; see docs/credentials.md':
    'deployment.max_parallel_requests deployment.rpm_limit',
  'write tpm at the credential in the manifest; see docs/credentials.md': 'deployment.tpm_limit',
  'fields that only tune are dropped; quirks.drop of the manifest drops others': 'deployment.drop_params',
  'the parameters of the offer in the manifest say which fields it takes': 'deployment.allowed_openai_params',
  'write reasoning in defaults of a virtual model': 'deployment.thinking',
  'the provider demo simulates answers; see server.demo in gateway.yaml': 'deployment.mock_',
  'set egress.ca of the manifest to trust a certificate authority of your own': 'deployment.ssl_verify',
  'write supports of the offer in the manifest': 'deployment.supports_',
  'write pricing of the offer in the manifest; see docs/money.md':
    'deployment.input_cost deployment.output_cost deployment.cache_creation deployment.cache_read',
  'set it at the server: the API of OpenAI has no such field': 'deployment.keep_alive deployment.num_ctx',
  'clients of generateContent set it in their requests': 'deployment.safety_settings',
  'nothing is fine-tuned here; clients call the provider for it': 'finetune_settings',
  'files of batches and assistants are not stored here; clients call the provider for them': 'files_settings',
  'no vector stores are searched here; clients call theirs': 'vector_store_registry',
  'nothing is searched here; models with web_search do it': 'search_tools',
  'write system in a virtual model; see docs/virtual-models.md#presets': 'prompts',
  'models are called here, not agents': 'agent_list',
  'clients and operators have listeners of their own; see docs/operations.md':
    'general_settings.public_routes general_settings.allowed_routes general_settings.admin_only_routes',
  'no license is needed': 'general_settings.litellm_license',
  'set admin.oidc in gateway.yaml; see docs/ui.md': 'general_settings.custom_sso',
  'set a limit: gatewayctl keys update --tpm': 'litellm_settings.tpm_limit',
  'set a limit: gatewayctl keys update --rpm': 'litellm_settings.rpm_limit',
  'write default_fallbacks, then import again': 'litellm_settings.fallback_models',
  'connections take the first address that answers; see docs/egress.md': 'litellm_settings.force_ipv4',
  'set a limit of each key: gatewayctl keys update --rpm': 'litellm_settings.priority_reservation',
  'write use of a virtual model; see docs/virtual-models.md': 'router_settings.fallbacks',
  'see docs/routing.md for how requests wait and are repeated':
    'router_settings.polling_interval router_settings.default_priority',
  'connections are kept by provider; see docs/reliability.md': 'router_settings.client_ttl',
  'answers are kept by model; see docs/virtual-models.md#limits-and-cache': 'router_settings.caching_groups',
  'set strategy of each virtual model; see docs/virtual-models.md': 'router_settings.routing_groups',
}

/** Advice for keys that are not carried, by their beginning; the longest one counts. */
export const ADVICE: ReadonlyMap<string, string> = new Map([
  ['', 'there is no such setting'],
  ...Object.entries(STARTS).flatMap(([advice, starts]) =>
    starts
      .trim()
      .split(/\s+/)
      .map((start): [string, string] => [start, advice]),
  ),
])
