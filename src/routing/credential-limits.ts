/** Limits per minute of operators' credentials: what is over one goes to another credential, or provider. */
import type { Counters, Reservation } from '../core/ports.ts'
import type { Credential } from '../core/provider-settings.ts'
import { errors } from '../lib/error.ts'
import { windowKinds } from '../limits/kinds.ts'

/** Units that a request has taken from the limits of its credential. */
export class CredentialUse {
  readonly #requests: Reservation | undefined
  readonly #tokens: Reservation | undefined

  constructor(requests: Reservation | undefined, tokens: Reservation | undefined) {
    this.#requests = requests
    this.#tokens = tokens
  }

  /** Sets right how many tokens were taken; undefined where the request was not sent. */
  async end(tokens: number | undefined): Promise<void> {
    if (tokens === undefined) await this.#requests?.correct(0)
    await this.#tokens?.correct(tokens ?? 0)
  }
}

/** Takes a request and its estimated tokens. Rejects with an error that may fail over, and takes nothing then. */
export async function takeFrom({ id, limits }: Credential, tokens: number, counters: Counters): Promise<CredentialUse> {
  const { rpm, tpm } = limits!
  const take = async (kind: 'rpm' | 'tpm', limit: number | undefined, units: number) =>
    limit === undefined
      ? undefined
      : counters.reserve(`credential ${id} ${kind}`, limit, windowKinds[kind].windowMs, Math.min(units, limit))
  const requests = await take('rpm', rpm, 1)
  if (requests?.allowed === false) throw overLimit(requests)
  const reserved = await take('tpm', tpm, tokens)
  if (reserved?.allowed === false) {
    await requests?.correct(0)
    throw overLimit(reserved)
  }
  return new CredentialUse(requests, reserved)
}

const overLimit = ({ resetMs }: Reservation) => errors.credentialLimited(resetMs)
