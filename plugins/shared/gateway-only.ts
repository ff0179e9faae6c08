/** Chat request fields that endpoints tolerate in bodies of their provider's wire, and that the provider would refuse. */
export const GATEWAY_ONLY: readonly string[] = [
  'effort',
  'free_models_only',
  'image_config',
  'no_reasoning',
  'onboarding',
  'plugins',
  'reasoning_effort',
  'routing',
  'sensitive_word_check',
  'verbosity',
  'web_search',
]
