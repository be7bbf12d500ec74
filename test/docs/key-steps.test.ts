import { expect, test } from 'vitest'
import { getMasterKey } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { expectOnlyCurrentOpens } from '../master-key/secrets.ts'
import { runCli } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { fillIn, readSteps } from './steps.ts'

// The numbered steps of docs/operations.md about keys, run as they stand there.

test('the steps of "Rotate the master key" replace the key', async () => {
  const reelgate = await startReelgate({ database: 'sqlite' }) // the doctor finds fault with the tests' PostgreSQL, whose fsync is off
  const old = getMasterKey(reelgate)
  const [rotate, doctor] = await runSteps(reelgate, 'Rotate the master key', {})
  expect(rotate).toMatch(/recovery phrase of the new key/)
  expect(doctor).toMatch(/master key +It exists and belongs to this installation|It exists and belongs/)
  expectOnlyCurrentOpens(reelgate, [old])
})

test('the steps of "Re-encrypt a video after a leak" stop the leak, and the video gets a new key', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { videoId } = reelgate
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(videoId, { userId: 'reader-1' }))
  const [stopped] = await runSteps(reelgate, 'Re-encrypt a video after a leak', {
    ACCOUNT: 'owner',
    USER_ID: 'reader-1',
    VIDEO_ID: videoId,
  })
  expect(stopped).toMatch(/stopped +1/)
  expect((await viewer.key(0)).status).toBe(403)
  await expect.poll(() => reelgate.output()).toMatch(/video: next generation published/)
  expect(readRows(reelgate, 'select number from generation where video_id = ?', videoId)).toEqual([{ number: 2 }])
})

/** Runs the commands of a section's numbered steps, in order. @returns what each printed */
async function runSteps(reelgate: Reelgate, section: string, names: Readonly<Record<string, string>>): Promise<string[]> {
  const commands = (await readSteps(section)).flatMap((step) => step.commands)
  const printed: string[] = []
  for (const command of commands) {
    const args = fillIn(command, names)
      .replace(/^npx reelgate /, '')
      .split(' ')
    const { code, stdout, stderr } = await runCli(args, reelgate.env)
    expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' })
    printed.push(stdout)
  }
  return printed
}
