/** The parts of undici that `src/upstream` uses, for the bundler in place of the whole package. */
import apiRequest from 'undici/lib/api/api-request.js'
import Agent from 'undici/lib/dispatcher/agent.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'

export { default as buildConnector } from 'undici/lib/core/connect.js'
export { default as Client } from 'undici/lib/dispatcher/client.js'
export { default as Pool } from 'undici/lib/dispatcher/pool.js'
export { Agent }

// As undici's own index does with all of its methods.
Dispatcher.prototype.request = apiRequest
