/** A thread that heals the texts of one answer after the other; `src/filters/heal-threads.ts` starts it. */
import { parentPort } from 'node:worker_threads'
import { heal } from '../filters/heal.ts'

const port = parentPort!
port.on('message', (texts: readonly string[]) => port.postMessage(texts.map(heal)))
