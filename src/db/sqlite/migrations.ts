import type { Migration } from 'kysely/migration'
import { tables } from './migrations/0001-tables.ts'
import { serverKeys } from './migrations/0002-server-keys.ts'
import { keyBudgets } from './migrations/0003-key-budgets.ts'
import { liveSessions } from './migrations/0004-live-sessions.ts'
import { alerts } from './migrations/0005-alerts.ts'
import { viewings } from './migrations/0006-viewings.ts'
import { otpDefaults } from './migrations/0007-otp-defaults.ts'
import { alertMails } from './migrations/0008-alert-mails.ts'
import { resumePositions } from './migrations/0009-resume-positions.ts'
import { consoleUsers } from './migrations/0010-console-users.ts'
import { trash } from './migrations/0011-trash.ts'
import { namedUsage } from './migrations/0012-named-usage.ts'
import { seenAlerts } from './migrations/0013-seen-alerts.ts'
import { unplannedByAccount } from './migrations/0014-unplanned-by-account.ts'
import { refusals } from './migrations/0015-refusals.ts'
import { videoOrders } from './migrations/0016-video-orders.ts'
import { accountOfAttempts } from './migrations/0017-account-of-attempts.ts'
import { storageDays } from './migrations/0018-storage-days.ts'
import { storageLimit } from './migrations/0019-storage-limit.ts'
import { people } from './migrations/0022-people.ts'
import { viewerNames } from './migrations/0024-viewer-names.ts'
import { damagedFiles } from './migrations/0025-damaged-files.ts'
import { openWorkAndRepairs } from './migrations/0026-open-work-and-repairs.ts'
import { mailsToPeople } from './migrations/0027-mails-to-people.ts'

/** In order; a released one never changes. */
export const MIGRATIONS: Record<string, Migration> = {
  '0001-tables': tables,
  '0002-server-keys': serverKeys,
  '0003-key-budgets': keyBudgets,
  '0004-live-sessions': liveSessions,
  '0005-alerts': alerts,
  '0006-viewings': viewings,
  '0007-otp-defaults': otpDefaults,
  '0008-alert-mails': alertMails,
  '0009-resume-positions': resumePositions,
  '0010-console-users': consoleUsers,
  '0011-trash': trash,
  '0012-named-usage': namedUsage,
  '0013-seen-alerts': seenAlerts,
  '0014-unplanned-by-account': unplannedByAccount,
  '0015-refusals': refusals,
  '0016-video-orders': videoOrders,
  '0017-account-of-attempts': accountOfAttempts,
  '0018-storage-days': storageDays,
  '0019-storage-limit': storageLimit,
  '0022-people': people,
  '0024-viewer-names': viewerNames,
  '0025-damaged-files': damagedFiles,
  '0026-open-work-and-repairs': openWorkAndRepairs,
  '0027-mails-to-people': mailsToPeople,
}
