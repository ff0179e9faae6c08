/** The main loop of a forked process that executes one order per message. */
import { once } from 'node:events'

/** Reports readiness, answers each order with the result of `run`, and ends with its parent process. */
export async function obey<Order extends { do: string }>(run: (order: Order) => Promise<unknown>): Promise<never> {
  process.on('message', (order: Order) => {
    run(order).then(
      answer => process.send?.(answer),
      (error: unknown) => process.send?.(`${order.do} failed: ${error}`),
    )
  })
  process.send?.('ready')
  await once(process, 'disconnect')
  return process.exit()
}
