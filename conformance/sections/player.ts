import { check, type Section } from '../check.ts'
import { expectAnswer } from '../expect.ts'
import type { Installation } from '../installation.ts'
import { is } from '../shape.ts'

const html = is('HTML', (value) => /^text\/html\b/.test(String(value)))
const script = is('a script', (value) => /^text\/javascript\b/.test(String(value)))

const get = (at: Installation, path: string) => at.send({ method: 'GET', url: `${at.base}${path}` })

async function issueOtp(at: Installation) {
  const { body } = await at.api('POST', `/videos/${await at.sharedReadyVideo()}/otp`)
  return body as { otp: string; playbackInfo: string }
}

/** What needs no browser of the section; `test/browser/page-api.test.ts` has the rest. */
export const player: Section = {
  section: 8,
  title: 'Player',
  checks: [
    check('the player’s page is at /player/, /player/v2/ and /v2/, with and without playbackInfo', async (at) => {
      const { otp, playbackInfo } = await issueOtp(at)
      for (const path of ['/player/', '/player/v2/', '/v2/']) {
        for (const query of [`otp=${otp}`, `otp=${otp}&playbackInfo=${playbackInfo}`])
          expectAnswer(await get(at, `${path}?${query}`), { status: 200, headers: { 'content-type': html } })
      }
    }),
    check('the scripts of embedding pages are at /v2/, /player/v2/, /playerAssets/ of any version, and the root', async (at) => {
      const paths = ['/v2/api.js', '/v2/player.js', '/player/v2/player.js', '/vdo.js']
      for (const path of [...paths, '/playerAssets/1.6.10/vdo.js', '/playerAssets/1.x/vdo.js', '/playerAssets/any/vdo.js?v=2'])
        expectAnswer(await get(at, path), { status: 200, headers: { 'content-type': script } })
    }),
    check('the scripts define what pages call', async (at) => {
      expectAnswer(await get(at, '/v2/api.js'), {
        status: 200,
        text: /VdoPlayer[\s\S]*onVdoPlayerV2APIReady|onVdoPlayerV2APIReady[\s\S]*VdoPlayer/,
      })
      expectAnswer(await get(at, '/v2/player.js'), { status: 200, text: /vdocipher-player/ })
      expectAnswer(await get(at, '/vdo.js'), { status: 200, text: /onVdoCipherAPIReady/ })
    }),
    check('the page of an OTP with a whitelist may be framed by its hosts alone', async (at) => {
      const id = await at.sharedReadyVideo()
      const page = async (json: object) => {
        const { body } = await at.api('POST', `/videos/${id}/otp`, { json })
        return get(at, `/player/?otp=${(body as { otp: string }).otp}`)
      }
      const hosts = /frame-ancestors [^;]*\bexample\.org\b/
      expectAnswer(await page({ whitelisthref: 'example.org' }), { status: 200, headers: { 'content-security-policy': hosts } })
      const open = is('without frame-ancestors', (value) => !/frame-ancestors/.test(String(value)))
      expectAnswer(await page({}), { status: 200, headers: { 'content-security-policy': open } })
    }),
    check('the earlier interface’s operations stay POST only', async (at) => {
      expectAnswer(await get(at, '/v2/videos'), { status: 405 })
      expectAnswer(await get(at, '/v2/otp?video=x'), { status: 405 })
    }),
  ],
}
