/** Exit codes of `gatewayctl`. */

/** Exit codes by meaning. Only `launch` ends with other codes: those of its tool. */
export const exitCode = { done: 0, failed: 1, usage: 2 } as const

/** For the reference: code, meaning. */
export const exitCodes: readonly (readonly [code: string, meaning: string])[] = [
  [`${exitCode.done}`, 'done'],
  [`${exitCode.failed}`, 'refused or failed, or a check found something; one line on standard error says why'],
  [`${exitCode.usage}`, 'wrong use: an unknown command or option, or a wrong value; nothing was done'],
  ['other', 'the code of the tool that `launch` started; 128 and the number of the signal that ended it'],
]
