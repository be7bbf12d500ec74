/** What owners may be told of (wire-contract.md, section 7). */
export const HOOK_EVENTS = ['video:ready', 'video:readyall', 'video:failed', 'video:deleted', 'otp:reused'] as const
export type HookEvent = (typeof HOOK_EVENTS)[number]
