/** Sessions of the operator, for `gatewayctl chat`: created before a request, ended after it. */
import { s } from '../../core/schema.ts'
import { project } from '../arguments.ts'
import { type CommandTable, command } from '../command.ts'

const id = s.string({ minLength: 1, description: 'the id of a session, as sessions.begin answers it' })

/** `sessions.*`: the operator's own sessions, by which `gatewayctl` calls the public listener. */
export const sessionCommands: CommandTable = {
  /** → `{id, key, expiresAt}`: `key` is the secret, which is never shown again. */
  'sessions.begin': command(s.object({ project }), ({ project }, { operatorSessions }, actor) =>
    operatorSessions.begin(project, actor),
  ),
  'sessions.end': command(s.object({ id }), async ({ id }, { operatorSessions }) => {
    await operatorSessions.end(id)
    return { id }
  }),
}
