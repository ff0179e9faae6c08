/** Chat request fields that endpoints tolerate in bodies of their provider's wire, and that the provider would refuse. */
export const GATEWAY_ONLY: readonly string[] = [
  'effort',
  'image_config',
  'onboarding',
  'plugins',
  'reasoning_effort',
  'sensitive_word_check',
  'verbosity',
  'web_search',
]
