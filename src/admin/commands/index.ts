/** All commands by name. */
import type { CommandTable } from '../command.ts'
import { complianceCommands, iamCommands, providerKeyCommands } from './access.ts'
import { keyCommands, memberCommands, organizationCommands, sessionCommands } from './accounts.ts'
import { creditCommands, planCommands } from './billing.ts'
import { customModelCommands, explainCommands, modelCommands, providerCommands, routeCommands } from './catalogue.ts'
import { oauthCommands } from './oauth.ts'
import { auditCommands, jobCommands, usageCommands } from './records.ts'
import { statusCommands } from './status.ts'

/** All commands, each served at `POST /commands/<name>`. */
export const commands: CommandTable = {
  ...organizationCommands,
  ...memberCommands,
  ...oauthCommands,
  ...keyCommands,
  ...sessionCommands,
  ...creditCommands,
  ...planCommands,
  ...providerKeyCommands,
  ...iamCommands,
  ...complianceCommands,
  ...customModelCommands,
  ...providerCommands,
  ...modelCommands,
  ...explainCommands,
  ...routeCommands,
  ...jobCommands,
  ...usageCommands,
  ...auditCommands,
  ...statusCommands,
}
