/** The life of a forked process that does what it is told, one message an order. */
import { once } from 'node:events'

/** Says that it is ready, answers each order with what `run` makes of it, and ends with the process that forked it. */
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
