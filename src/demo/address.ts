/** Where the simulated provider stands: nowhere but in this process. */

/** Variable in manifests for the address of the simulated provider. */
export const DEMO_URL = 'GATEWAY_DEMO_URL'
/** The name ends in `.localhost`, which leads nowhere else (RFC 6761); no connection is made to it. */
export const DEMO_ORIGIN = 'http://demo.localhost'
/** The value of `DEMO_URL`. */
export const DEMO_BASE_URL = `${DEMO_ORIGIN}/v1`
