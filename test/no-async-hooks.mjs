/**
 * Loaded before the tests (`--import`): no hook sees each promise. tap would attribute an error outside of every test to
 * one of them by such hooks, at an eighth of an end-to-end file's time; without them it ends the process, which fails the
 * file and prints the error.
 */
import hooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const none = { enable: () => none, disable: () => none }
hooks.createHook = () => none
syncBuiltinESMExports()
