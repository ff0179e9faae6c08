/** Operators' commands over the admin listener. */
import type { Gateway } from './gateway.ts'

/** Runs a command and returns its answer; throws the gateway's error. */
export type Command = <T = Record<string, unknown>>(name: string, args?: object) => Promise<T>

/** The commands of a gateway. */
export function commandsOf(gateway: Pick<Gateway, 'admin'>): Command {
  return async <T>(name: string, args: object = {}) => {
    const response = await gateway.admin('POST', `/commands/${name}`, args)
    const answer = (await response.json()) as T
    if (response.status !== 200) throw new Error(`${name}: ${JSON.stringify(answer)}`)
    return answer
  }
}
