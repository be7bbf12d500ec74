import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { startServer } from '../../src/server.ts'
import { makeLocation } from '../installation-folder.ts'

const HOUR_S = 3600

test('R11: a ban survives restarts; a clock that goes back does not lengthen it, and it ends in time', async () => {
  const location = await makeLocation()
  onTestFinished(location.remove)
  const startS = Math.floor(Date.now() / 1000)
  /** Starts a server by this clock and asks it. @returns how many minutes the last of so many calls must wait, in steps of five, since real time passes too */
  async function askAt(wallS: number, calls: number): Promise<number> {
    const env = { ...location.env, PORT: '0', REELGATE_DEMO: 'off', REELGATE_LIMITS: '{"unauthenticated":{"ip":2}}' }
    const server = await startServer(readConfig(env), pino({ level: 'silent' }), { wallNowS: () => wallS })
    let last = await fetch(`${server.url}/api/videos`)
    for (let i = 1; i < calls; i++) last = await fetch(`${server.url}/api/videos`)
    await server.stop()
    return Math.round(Number(last.headers.get('retry-after')) / 300) * 5
  }

  expect(await askAt(startS, 10)).toBe(30)
  expect(await askAt(startS - 2 * HOUR_S, 1)).toBe(30)
  expect(await askAt(startS - 240 * HOUR_S, 1)).toBe(30)
  expect(await askAt(startS + HOUR_S / 4, 1)).toBe(15)
  expect(await askAt(startS - 2 * HOUR_S, 1)).toBe(15)
  expect(await askAt(startS + 2 * HOUR_S, 1)).toBe(0)
  expect(await askAt(startS + 2 * HOUR_S, 10)).toBe(60) // the second strike of these days
})
