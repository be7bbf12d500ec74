import { formatBytes, formatDuration, formatSeconds } from '../units.ts'
import type { Alert } from './queries.ts'

type Explain = (alert: Alert) => { title: string; advice: string }

/** What each cause means for an owner, and what can be done. */
const CAUSES: Readonly<Record<string, Explain>> = {
  'keys-drawn': (alert) => ({
    title: `${viewerOf(alert)} got keys for more video than was played`,
    advice: `${seconds(alert, 'drawnS')} of video for ${seconds(alert, 'playedS')} played, within an hour: somewhat like a download. Look at the sessions, and stop them if no one watches.`,
  }),
  'key-pace-ignored': (alert) => ({
    title: `${viewerOf(alert)} asked for keys faster than allowed`,
    advice: 'The player waits between keys; a program that records does not. No key was given early.',
  }),
  'many-places': (alert) => ({
    title: `${viewerOf(alert)} watched from many locations`,
    advice: `${number(alert, 'prefixes')} networks in ${number(alert, 'countries')} countries within an hour: the access may be shared. A stream limit keeps it to one screen.`,
  }),
  'otp-reused': (alert) => ({
    title: `A second browser tried a link of ${viewerOf(alert)}`,
    advice: `It was refused. First used at ${alert.numbers.firstAddress ?? 'an address'}, then tried at ${alert.numbers.secondAddress ?? 'another one'}.`,
  }),
  'rule-refused': (alert) => ({
    title: `A rule refused ${viewerOf(alert)}`,
    advice: `The rule ${alert.numbers.rule ?? ''} of the video, its site or country. If it was meant to be allowed, change the rule.`,
  }),
  'disk-nearly-full': () => ({
    title: 'The disk is nearly full',
    advice: 'Uploads are refused until there is space again: delete videos for good, or give the server a larger disk.',
  }),
  'bucket-away': ({ numbers }) => ({
    title: 'The storage with the videos’ files does not answer',
    advice: `${numbers.reason ?? ''} Uploads are refused and encodes wait until it does.`,
  }),
  'bucket-back': (alert) => ({
    title: 'The storage with the videos’ files answers again',
    advice: `It was away for ${seconds(alert, 'awayS')}. Uploads, encodes and playback continue.`,
  }),
  'storage-nearly-used': (alert) => ({
    title: `${bytes(alert, 'storedBytes')} of ${bytes(alert, 'limitBytes')} are stored`,
    advice:
      'At the limit, uploads and imports are refused. Delete videos for good, also from the trash, or ask the administrator of this server for more.',
  }),
  'encode-failed': (alert) => ({
    title: alert.videos.length > 1 ? 'Videos could not be encoded or imported' : 'A video could not be encoded or imported',
    advice: `${alert.numbers.reason ?? 'The video’s page says why.'}`,
  }),
  'webhook-disabled': (alert) => ({
    title: 'A webhook was switched off',
    advice: `${alert.numbers.reason ?? 'It failed for too long.'} Mend the endpoint, then switch it on again under Develop.`,
  }),
  'webhook-retries-late': (alert) => ({
    title: 'Retries of a webhook are late',
    advice: `The oldest one has been due for ${seconds(alert, 'dueForS')}: the endpoint is slow or fails. Its deliveries are under Develop.`,
  }),
  'api-key-ends': (alert) => ({
    title: `The API key ${alert.numbers.prefix ?? ''}… ends soon`,
    advice: `In ${number(alert, 'daysLeft')} days. Rotate it, and give your site the new secret before that.`,
  }),
  'backup-old': (alert) => ({
    title: `The last good backup is ${number(alert, 'ageDays')} days old`,
    advice: 'What was uploaded since then would be lost with this disk. On the server: reelgate backup FOLDER',
  }),
  'proxy-unknown': ({ numbers }) => ({
    title: `The proxy ${numbers.address ?? ''} is not trusted`,
    advice:
      'It sends X-Forwarded-For, which is ignored, so all viewers behind it share its limits. Add it to REELGATE_TRUSTED_PROXIES; if it is not your proxy, let only the proxy reach the port.',
  }),
  'bucket-not-direct': ({ numbers }) => ({
    title: 'Players cannot load segments from the bucket',
    advice: `This server sends them: ${numbers.reason ?? ''}. Add this CORS rule to the bucket, or set REELGATE_MEDIA_DELIVERY=server: ${numbers.rule ?? ''}`,
  }),
  'playback-worse': ({ numbers }) => ({
    title: `Videos played far worse on ${numbers.day ?? 'a day'}`,
    advice: [
      ...(numbers.waitedPercent === undefined
        ? []
        : [`${numbers.waitedPercent} % of the views waited for data, usually ${numbers.usuallyWaitedPercent} %.`]),
      ...(numbers.startMs === undefined
        ? []
        : [`The first frame came after ${secondsOf(numbers.startMs)}, usually ${secondsOf(numbers.usualStartMs)}.`]),
      'Compare countries, browsers and networks on the Activity page.',
    ].join(' '),
  }),
  'encoder-missing': ({ numbers }) => ({
    title: `Chunks of ${String(numbers.kinds ?? '').replace('audio', 'sound')} wait, and no encoder takes them`,
    advice:
      'Start a worker that takes what waits, of one version for video and sound, or let the server encode (REELGATE_ENCODERS).',
  }),
  'worker-silent': ({ numbers }) => ({
    title: `The encoder ${numbers.worker ?? ''} is silent`,
    advice: 'It asked for nothing in ten minutes. Look at its machine; if it is no longer used: reelgate worker remove NAME',
  }),
  'worker-suspended': ({ numbers }) => ({
    title: `The encoder ${numbers.worker ?? ''} is suspended`,
    advice: `What it sent failed a check, and nothing of that was published: ${numbers.reason ?? ''}. Remove it unless you know why.`,
  }),
  'sandbox-missing': () => ({
    title: 'Videos are decoded without a sandbox',
    advice: 'bubblewrap does not run on the server. Install it: a crafted video could otherwise reach the server’s files.',
  }),
}

export function explain(alert: Alert): { title: string; advice: string } {
  return CAUSES[alert.cause]?.(alert) ?? { title: alert.cause, advice: JSON.stringify(alert.numbers) }
}

function viewerOf({ userId }: Alert): string {
  return userId ?? 'a viewer without an id'
}

function number({ numbers }: Alert, name: string): string {
  return String(numbers[name] ?? 'several')
}

function secondsOf(ms: string | number | undefined): string {
  return formatSeconds(Number(ms ?? 0) / 1000)
}

function bytes({ numbers }: Alert, name: string): string {
  return formatBytes(Number(numbers[name] ?? 0))
}

function seconds({ numbers }: Alert, name: string): string {
  return formatDuration(Number(numbers[name] ?? 0))
}
