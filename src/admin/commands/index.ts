/** Every command by its name. */
import type { CommandTable } from '../command.ts'
import { explainCommands } from './explain.ts'
import { keyCommands } from './keys.ts'
import { modelCommands } from './models.ts'
import { providerCommands } from './providers.ts'
import { statusCommands } from './status.ts'
import { usageCommands } from './usage.ts'

export const commands: CommandTable = {
  ...keyCommands,
  ...providerCommands,
  ...modelCommands,
  ...explainCommands,
  ...usageCommands,
  ...statusCommands,
}
