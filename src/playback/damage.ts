import type { Logger } from 'pino'

/** A published segment whose file is not as its row says. */
export type Damage = {
  videoId: string
  generation: number
  renditionId: number
  number: number
  problem: string
}

const AGAIN_AFTER_S = 3600
const MOST_REMEMBERED = 10_000

/** Says in the log which segments are damaged, each once an hour however many viewers ask for it. */
export function createDamageLog(log: Logger, nowS: () => number): (damage: Damage) => void {
  const saidAtS = new Map<string, number>()
  return ({ problem, ...segment }) => {
    const name = Object.values(segment).join('/')
    if (nowS() - (saidAtS.get(name) ?? Number.NEGATIVE_INFINITY) < AGAIN_AFTER_S) return
    saidAtS.delete(name)
    saidAtS.set(name, nowS())
    if (saidAtS.size > MOST_REMEMBERED) saidAtS.delete(saidAtS.keys().next().value ?? '')
    log.error({ ...segment, problem }, 'video: damaged')
  }
}
