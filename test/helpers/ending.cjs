/** Loaded before a gateway (`--require`): writes to standard output that the process ended with nothing left to do. */
const { writeSync } = require('node:fs')

process.once('beforeExit', () => writeSync(1, 'nothing is left to do\n'))
