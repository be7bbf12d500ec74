import type { Section } from './check.ts'
import { demo, list, tags, videos } from './sections/api.ts'
import { errors } from './sections/errors.ts'
import { files, filesV2 } from './sections/files.ts'
import { folders } from './sections/folders.ts'
import { importing, importingV2 } from './sections/import.ts'
import { limits } from './sections/limits.ts'
import { otpOptions } from './sections/otp-options.ts'
import { player } from './sections/player.ts'
import { upload } from './sections/upload.ts'
import { v2 } from './sections/v2.ts'
import { values } from './sections/values.ts'
import { usage, webhooks } from './sections/webhooks.ts'

/** Every line of sections 1 to 7 and 9 of the wire contract, and those of section 8 that need no browser. The last check exceeds a rate limit, so it must stay last. */
export const SECTIONS: readonly Section[] = [
  values,
  errors,
  list,
  videos,
  tags,
  folders,
  files,
  importing,
  usage,
  demo,
  upload,
  otpOptions,
  v2,
  filesV2,
  importingV2,
  webhooks,
  player,
  limits,
]
