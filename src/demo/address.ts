/** The variable by which configuration files name the address of the simulated provider: another one at every start. */
export const DEMO_URL = 'GATEWAY_DEMO_URL'
