import type { AlertCause } from './cause.ts'
import type { MailedAlert } from './mail-store.ts'

/** For each cause the subject, and what to do. */
const CAUSES: Readonly<Record<AlertCause, { subject: string; remedy: string }>> = {
  'disk-nearly-full': {
    subject: 'The disk is nearly full',
    remedy: 'Uploads are refused and encodes wait; videos play. Delete videos or free space in another way.',
  },
  'bucket-away': {
    subject: 'The bucket with the files of videos is away',
    remedy:
      'Uploads are refused and encodes wait; viewers go on with what a CDN, nginx or their browser has. The reason is below; reelgate doctor checks it again.',
  },
  'bucket-back': {
    subject: 'The bucket with the files of videos answers again',
    remedy: 'Uploads, encodes and playback continue by themselves. There is nothing to do.',
  },
  'storage-nearly-used': {
    subject: 'An account has nearly used its storage',
    remedy: 'At its limit, uploads and imports are refused. Raise it: reelgate account set ACCOUNT --storage-limit SIZE',
  },
  'encode-failed': {
    subject: 'A video could not be encoded',
    remedy: 'The reason below is what its owner sees. If it names this server and not the file, run: reelgate doctor',
  },
  'webhook-disabled': {
    subject: 'A webhook was switched off',
    remedy: 'It failed for days, or said that it is gone. Correct its receiver, then switch it on over the API.',
  },
  'webhook-retries-late': {
    subject: 'Retries of a webhook are late',
    remedy: 'Its receiver is slow or fails, so more waits than is sent: look at its deliveries, and correct the receiver.',
  },
  'api-key-ends': {
    subject: 'An API key ends soon',
    remedy: 'Replace it before, and give the new one to the program that uses it: reelgate key rotate KEY_ID',
  },
  'backup-old': {
    subject: 'The last good backup is old',
    remedy: 'Run reelgate backup FOLDER every day, from a timer, and look why it no longer does, or which files it names.',
  },
  'proxy-unknown': {
    subject: 'A proxy is not trusted',
    remedy:
      'All viewers behind it share its limits. Add its address to REELGATE_TRUSTED_PROXIES; if it is not your proxy, let only the proxy reach the port.',
  },
  'bucket-not-direct': {
    subject: 'Players cannot load from the bucket',
    remedy:
      'Videos play, and this server sends their segments. Add the rule above to the bucket’s CORS rules; or set REELGATE_MEDIA_DELIVERY=server, and this stays so without an alert.',
  },
  'playback-worse': {
    subject: 'Videos played far worse yesterday',
    remedy:
      'Compare countries, browsers and networks of that day on the Activity page: what is worse for all is the server or its line.',
  },
  'sandbox-missing': {
    subject: 'The sandbox around ffmpeg does not run',
    remedy: 'Uploads wait, or are encoded without it. What to do: reelgate doctor',
  },
  'encoder-missing': {
    subject: 'Videos wait, and no encoder takes them',
    remedy:
      'Start a worker that takes what waits, of one version for video and sound, or set REELGATE_ENCODERS: reelgate worker list',
  },
  'worker-silent': {
    subject: 'An encoder on another machine is silent',
    remedy: 'Look at its machine and its log. If it is no longer used: reelgate worker remove NAME',
  },
  'worker-suspended': {
    subject: 'An encoder on another machine is suspended',
    remedy: 'What it sent failed a check, and nothing of that was published. Remove it unless you know why: reelgate worker list',
  },
  'keys-drawn': {
    subject: 'A viewer draws keys without watching',
    remedy: 'Compare drawn and played seconds, and stop the viewer if that is no accident: reelgate session stop ACCOUNT',
  },
  'key-pace-ignored': {
    subject: 'A program asks for keys too early',
    remedy: 'The player never does. Stop the viewer if that is no accident: reelgate session stop ACCOUNT',
  },
  'many-places': {
    subject: 'A viewer watches from many locations',
    remedy: 'The userId may be shared. Stop the viewer if it should not be: reelgate session stop ACCOUNT',
  },
  'otp-reused': {
    subject: 'A one-time password was used twice',
    remedy: 'The second browser did not play. Repeated cases mean that links are passed on.',
  },
  'rule-refused': {
    subject: 'A viewer was refused by a rule',
    remedy: 'One of your rules for hosts, addresses or countries refused a viewer. Check it if the viewer should play.',
  },
}

/** So many alerts are in a mail; the list has all. */
export const MAX_MAILED = 20
/** Of a name or a reason, which owners and files choose. */
const MAX_TEXT = 300

export type MailText = { subject: string; text: string }

/**
 * The e-mail about a cause.
 * @param installation its public host
 * @param alerts the first ones of the day, one more than are named if there are more
 */
export function writeAlertMail(installation: string, cause: string, alerts: readonly MailedAlert[]): MailText {
  const { subject, remedy } = Object.entries(CAUSES).find(([known]) => known === cause)?.[1] ?? { subject: cause, remedy: '' }
  const named = alerts.slice(0, MAX_MAILED).map(describeAlert)
  const more = alerts.length > MAX_MAILED ? ['… and more'] : []
  const paragraphs = [
    `${subject} (${cause}) at ${installation}.`,
    [...named, ...more].join('\n'),
    remedy,
    `All alerts: reelgate alert list ACCOUNT --cause ${cause}\nThere is one e-mail for each cause and day (UTC): what else happens today is in that list.`,
  ]
  return { subject: subjectLine(installation, subject), text: `${paragraphs.join('\n\n')}\n` }
}

export function writeTestMail(installation: string): MailText {
  return {
    subject: subjectLine(installation, 'Test'),
    text: `This is a test: alerts of the Reelgate installation at ${installation} reach this address.\n`,
  }
}

/** The e-mail to a person, with where it happened. */
export function writeNotice(installation: string, { subject, text }: MailText): MailText {
  return { subject: subjectLine(installation, subject), text: `${subject} at ${installation}.\n\n${text}\n` }
}

const subjectLine = (installation: string, subject: string) => `[Reelgate ${installation}] ${subject}`

function describeAlert({ accountName, userId, videos, numbers, occurrenceCount }: MailedAlert): string {
  const facts: Record<string, unknown> = JSON.parse(numbers)
  const parts = [
    `account ${accountName}`,
    ...(userId === null ? [] : [`viewer ${userId}`]),
    ...videos.map(({ id, title }) => `video ${title} (${id})`),
    ...Object.entries(facts).map(([name, value]) => `${name} ${value}`),
    ...(occurrenceCount > 1 ? [`${occurrenceCount} times`] : []),
  ]
  return `- ${parts.map(oneLine).join(', ')}`
}

/** Without line breaks and other control characters. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{C}+/gu, ' ').slice(0, MAX_TEXT)
}
