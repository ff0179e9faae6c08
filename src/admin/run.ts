/** Runs commands on arguments that come from outside. */
import type { Actor } from '../core/ports.ts'
import type { Schema } from '../core/schema.ts'
import { asError, errors, type GatewayError } from '../lib/error.ts'
import { type OnLimit, onLimitOf } from '../limits/kinds.ts'
import { compile, type Failure } from '../validation/compile.ts'
import type { Command } from './command.ts'
import type { AdminContext } from './context.ts'

/**
 * Runs a command on unvalidated arguments; rejects with a GatewayError that names an invalid one. `actor` is the caller,
 * for the audit log.
 */
export async function runCommand(
  name: string,
  { args: schema, run }: Command,
  args: unknown,
  context: AdminContext,
  actor: Actor,
): Promise<unknown> {
  const validate = compile(schema.json)
  if (!validate(args)) throw argumentError(name, schema, validate.errors![0]!)
  const { onLimit } = args as { readonly onLimit?: string }
  if (onLimit !== undefined) await checkAction(onLimitOf(onLimit), context)
  return run(args as never, context, actor)
}

/** Rejects with a 400 where a limit is to use an unknown model. Other failures only say that it cannot serve now. */
async function checkAction(action: OnLimit, { explainRoute }: AdminContext): Promise<void> {
  if (typeof action === 'string') return
  try {
    await explainRoute({ model: action.use })
  } catch (thrown) {
    const { status, message } = asError(thrown)
    if (status === 404) throw errors.invalidParameters(`Argument "onLimit": ${message}`, 'onLimit')
  }
}

function argumentError(name: string, schema: Schema<unknown>, error: Failure): GatewayError {
  const known = Object.keys((schema.json.properties as object | undefined) ?? {})
  const takes = `${name} takes ${known.length > 0 ? known.join(', ') : 'no arguments'}`
  const argument = error.instancePath.slice(1)
  switch (error.keyword) {
    case 'additionalProperties': {
      const unknown = String(error.params.additionalProperty)
      return errors.invalidParameters(`Unknown argument "${unknown}"; ${takes}.`, unknown)
    }
    case 'required': {
      const missing = String(error.params.missingProperty)
      return errors.invalidParameters(`Argument "${missing}" is missing; ${takes}.`, missing)
    }
    case 'enum':
      return errors.invalidParameters(
        `Argument "${argument}" must be one of ${error.params.allowedValues.join(', ')}.`,
        argument,
      )
    default: {
      if (!argument) return errors.invalidParameters(`The arguments must be a JSON object; ${takes}.`)
      const hint: unknown = error.parentSchema?.description
      return errors.invalidParameters(`Argument "${argument}" ${hint ? `must be ${hint}` : error.message}.`, argument)
    }
  }
}
