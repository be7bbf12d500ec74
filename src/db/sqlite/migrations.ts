import type { Migration } from 'kysely/migration'
import { firstTables } from './migrations/0001-first-tables.ts'
import { tagsAndSearch } from './migrations/0002-tags-and-search.ts'
import { markImages } from './migrations/0003-mark-images.ts'
import { streamSlots } from './migrations/0005-stream-slots.ts'
import { limits } from './migrations/0006-limits.ts'
import { keysAndActs } from './migrations/0007-keys-and-acts.ts'
import { folders } from './migrations/0008-folders.ts'
import { imports } from './migrations/0009-imports.ts'
import { hooks } from './migrations/0010-hooks.ts'
import { files } from './migrations/0011-files.ts'
import { otpRules } from './migrations/0012-otp-rules.ts'
import { usage } from './migrations/0013-usage.ts'
import { idempotency } from './migrations/0014-idempotency.ts'
import { mp4 } from './migrations/0015-mp4.ts'
import { boundedWork } from './migrations/0016-bounded-work.ts'
import { mp4Tries } from './migrations/0018-mp4-tries.ts'
import { chunksInTurn } from './migrations/0019-chunks-in-turn.ts'

/** In order; a released one never changes. */
export const MIGRATIONS: Record<string, Migration> = {
  '0001-first-tables': firstTables,
  '0002-tags-and-search': tagsAndSearch,
  '0003-mark-images': markImages,
  '0005-stream-slots': streamSlots,
  '0006-limits': limits,
  '0007-keys-and-acts': keysAndActs,
  '0008-folders': folders,
  '0009-imports': imports,
  '0010-hooks': hooks,
  '0011-files': files,
  '0012-otp-rules': otpRules,
  '0013-usage': usage,
  '0014-idempotency': idempotency,
  '0015-mp4': mp4,
  '0016-bounded-work': boundedWork,
  '0018-mp4-tries': mp4Tries,
  '0019-chunks-in-turn': chunksInTurn,
}
