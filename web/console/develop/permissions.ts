import type { Permission } from './queries.ts'

/** What each permission allows, in the order of the form. */
export const PERMISSIONS: Readonly<Record<Permission, { label: string; allows: string }>> = {
  otpCreator: { label: 'Issue OTPs', allows: 'What the server of a site needs to show videos.' },
  viewer: { label: 'Read', allows: 'Videos, viewers, usage and alerts; no clear files.' },
  uploader: { label: 'Upload', allows: 'Uploads and imports of new videos.' },
  editor: { label: 'Change and delete', allows: 'Everything else: videos, webhooks, keys, settings.' },
  downloader: { label: 'Download', allows: 'Originals and MP4s, which are not protected.' },
}

export const PERMISSION_NAMES = Object.keys(PERMISSIONS).filter((name): name is Permission => name in PERMISSIONS)
