import { rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { expect, test } from 'vitest'
import { untilEncoded } from '../data-folder.ts'
import { newFolder } from '../encode/videos.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { runCli } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

const DEMO = "select video.id, status from video join account on account.id = account_id where account.name = 'Demo'"

test('M30: where bubblewrap does not run, uploads wait, the demo plays, and start, /readyz and doctor say so; when it runs, everything continues', async () => {
  const { folder, failing } = await newTools()
  const required = { PATH: folder, REELGATE_SANDBOX: 'required' }
  const reelgate = await startReelgate({ env: { ...required, REELGATE_DEMO: 'on' } })
  for (const said of ['bwrap: not now', 'uploads wait', '--security-opt seccomp=unconfined', 'REELGATE_SANDBOX=weak'])
    expect(reelgate.output()).toContain(said)
  const videoId = await reelgate.owner.upload('A video', await makeVideo({ seconds: 1, size: '160x90' }))
  await expect.poll(() => readRows(reelgate, DEMO)).toMatchObject([{ status: 'ready' }])
  await untilEncoded(reelgate, String(readRows(reelgate, DEMO)[0]?.id))
  expect(await redeemDemo(reelgate)).toMatchObject({ playing: true })
  expect((await reelgate.owner.video(videoId)).status).toBe('Queued')
  expect(await readiness(reelgate)).toMatchObject([200, { status: 'ready', checks: { ffmpeg: 'ok', sandbox: 'low' } }])
  const doctor = await runCli(['doctor', '--json'], { ...reelgate.env, ...required })
  expect(doctor.code).toBe(1)
  expect(JSON.parse(doctor.stdout)).toContainEqual({
    check: 'ffmpeg',
    state: 'trouble',
    says: expect.stringMatching(/bwrap: not now.*uploads wait.*--security-opt.*REELGATE_SANDBOX=weak/),
  })
  await rm(failing)
  await reelgate.owner.until(videoId, 'ready')
  await expect.poll(() => readiness(reelgate)).toMatchObject([200, { checks: { sandbox: 'ok' } }])
})

test('M30: without bubblewrap and with REELGATE_SANDBOX=weak uploads are encoded, and start and /readyz say so', async () => {
  const { folder } = await newTools()
  const reelgate = await startReelgate({ env: { PATH: folder, REELGATE_SANDBOX: 'weak' } })
  expect(reelgate.output()).toMatch(/bwrap: not now.*REELGATE_SANDBOX=weak: ffmpeg runs without it/)
  const videoId = await reelgate.owner.upload('A video', await makeVideo({ seconds: 1, size: '160x90' }))
  await reelgate.owner.until(videoId, 'ready')
  expect(await readiness(reelgate)).toMatchObject([200, { status: 'ready', checks: { sandbox: 'low' } }])
})

/** A PATH whose bubblewrap fails as long as a file is there. */
async function newTools(): Promise<{ folder: string; failing: string }> {
  const tools = await newFolder()
  const failing = join(tools, 'failing')
  await writeFile(failing, '')
  const script = `#!/bin/sh\n[ -e '${failing}' ] && { echo 'bwrap: not now' >&2; exit 1; }\nexec /usr/bin/bwrap "$@"\n`
  await writeFile(join(tools, 'bwrap'), script, { mode: 0o755 })
  return { folder: [tools, process.env.PATH].join(delimiter), failing }
}

async function readiness({ url }: Reelgate) {
  const response = await fetch(`${url}/readyz`)
  return [response.status, await response.json()]
}

async function redeemDemo({ url, newViewer }: Reelgate) {
  const response = await fetch(`${url}/api/site/homepage_video`)
  const { otp, playbackInfo } = (await response.json()) as { otp: string; playbackInfo: string }
  return newViewer().redeem(otp, JSON.parse(Buffer.from(playbackInfo, 'base64').toString()))
}
