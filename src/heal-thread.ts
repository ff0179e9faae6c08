/** A thread that heals one text and ends; `src/filters/heal.ts` starts it. */
import { parentPort, workerData } from 'node:worker_threads'
import { heal } from './filters/heal.ts'

parentPort!.postMessage(heal(workerData as string))
