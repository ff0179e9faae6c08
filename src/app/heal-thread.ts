/** A thread that repairs the JSON texts of one answer after the other; started by `src/filters/healing/heal-threads.ts`. */
import { parentPort } from 'node:worker_threads'
import { heal } from '../filters/healing/heal.ts'

const port = parentPort!
port.on('message', (texts: readonly string[]) => port.postMessage(texts.map(heal)))
