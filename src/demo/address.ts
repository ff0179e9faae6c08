/** Variable in configuration files for the address of the simulated provider, which changes with every start. */
export const DEMO_URL = 'GATEWAY_DEMO_URL'
