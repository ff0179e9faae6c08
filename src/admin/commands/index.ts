/** All commands by name. */
import type { CommandTable } from '../command.ts'
import { auditCommands } from './audit.ts'
import { complianceCommands } from './compliance.ts'
import { creditCommands } from './credits.ts'
import { customModelCommands } from './custom-models.ts'
import { explainCommands } from './explain.ts'
import { iamCommands } from './iam.ts'
import { jobCommands } from './jobs.ts'
import { keyCommands } from './keys.ts'
import { memberCommands } from './members.ts'
import { modelCommands } from './models.ts'
import { oauthCommands } from './oauth.ts'
import { organizationCommands } from './organizations.ts'
import { planCommands } from './plans.ts'
import { providerKeyCommands } from './provider-keys.ts'
import { providerCommands } from './providers.ts'
import { routeCommands } from './route.ts'
import { sessionCommands } from './sessions.ts'
import { statusCommands } from './status.ts'
import { usageCommands } from './usage.ts'

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
