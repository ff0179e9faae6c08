/** All commands by name. */
import type { CommandTable } from '../command.ts'
import { complianceCommands, iamCommands } from './access.ts'
import { creditCommands, planCommands } from './billing.ts'
import { customModelCommands, modelCommands, providerCommands } from './catalogue.ts'
import { explainCommands, routeCommands } from './explain.ts'
import { jobCommands } from './jobs.ts'
import { keyCommands, sessionCommands } from './keys.ts'
import { memberCommands } from './members.ts'
import { nodeCommands } from './nodes.ts'
import { oauthCommands } from './oauth.ts'
import { organizationCommands, projectCommands } from './organizations.ts'
import { providerKeyCommands } from './provider-keys.ts'
import { auditCommands, usageCommands } from './records.ts'
import { requestCommands } from './requests.ts'
import { statusCommands } from './status.ts'

/** All commands, each served at `POST /commands/<name>`. */
export const commands: CommandTable = {
  ...organizationCommands,
  ...projectCommands,
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
  ...requestCommands,
  ...auditCommands,
  ...nodeCommands,
  ...statusCommands,
}
