import { fstatSync } from 'node:fs'
import type { Config } from '../config/config.ts'

/**
 * Whether systemd's journal keeps stdout: then no secret belongs into it.
 * @see systemd.exec(5), JOURNAL_STREAM: an output that was redirected since has another device or inode
 */
export function isKeptByJournal({ journalStream }: Config): boolean {
  const { dev, ino } = fstatSync(process.stdout.fd)
  return journalStream === `${dev}:${ino}`
}
