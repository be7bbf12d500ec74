/**
 * The setting that names the master key an installation belongs to; during a rotation also the one before, after a space. Versions that
 * cannot rotate find a key that is not theirs, and do not start.
 */
export const MASTER_KEY_ID = 'master-key-id'
