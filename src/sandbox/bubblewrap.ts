import { findPackageJSON } from 'node:module'
import path from 'node:path'
import { Failure } from '../errors.ts'
import type { SandboxTools } from './arguments.ts'
import { collect, runSandboxed } from './child-process.ts'
import { keepKnownTools, readKnownTools } from './known-tools.ts'
import type { MediaEnd } from './media-run.ts'
import { systemCallFilter } from './system-calls.ts'
import { assertSupportedVersion, findTool, listLibraries, type Tools, TRIAL_LIMITS } from './tools.ts'
import { visiblePaths } from './visible-paths.ts'

/** The tools and the sandbox for media: one per server process, which `tryBubblewrap` keeps up to date. */
export type Sandbox = {
  /** Where programs are searched, in order. */
  folders: readonly string[]
  tools: Tools
  /** Files and folders of the system that the tools need inside bubblewrap. */
  visible: readonly string[]
  /** Paths that are never visible inside bubblewrap. */
  hidden: readonly string[]
  /** Where is kept what is known of the tools. */
  cacheDir?: string
  ffmpegVersion: string
  /** Whether bubblewrap has worked here once: from then on nothing runs without it. */
  bubblewrap: boolean
  /** Why the last attempt to start bubblewrap failed. */
  problem?: string
  /** Whether uploads may be opened with limits and whitelists alone where bubblewrap has never worked. */
  weak: boolean
  /** When to try bubblewrap again, on the clock of `performance.now()`. */
  nextTryMs: number
}

export type SandboxConfig = {
  toolFolders: readonly string[]
  sandbox: 'required' | 'weak'
  dataDir: string
  masterKeyFile: string
  cacheDir: string
}

const RETRY_AFTER_MS = 5_000

/**
 * Finds ffmpeg and bubblewrap, and tries both.
 * @throws Failure `unavailable` when a needed program is missing or does not start
 */
export async function openSandbox(config: Partial<SandboxConfig> = {}): Promise<Sandbox> {
  // No await before a program is spawned, so that it runs while the caller continues.
  const { toolFolders: folders = ['/usr/local/bin', '/usr/bin', '/bin'] } = config
  const [ffmpeg, ffprobe, prlimit] = ['ffmpeg', 'ffprobe', 'prlimit'].map((name) => findTool(name, folders))
  if (!ffmpeg || !ffprobe) throw new Failure('unavailable', 'ffmpeg is not installed: run apt-get install ffmpeg')
  if (!prlimit) throw new Failure('unavailable', 'prlimit is not installed: run apt-get install util-linux')
  const sandbox: Sandbox = {
    folders,
    tools: { ffmpeg, ffprobe, prlimit },
    visible: [],
    hidden: hiddenPaths(config),
    cacheDir: config.cacheDir,
    ffmpegVersion: '',
    bubblewrap: false,
    weak: config.sandbox === 'weak',
    nextTryMs: 0,
  }
  if (!(await tryBubblewrap(sandbox))) sandbox.ffmpegVersion = await readVersion(sandbox)
  assertSupportedVersion(sandbox.ffmpegVersion)
  return sandbox
}

/** The installation, its data folder and its key: ffmpeg never sees them, whatever folder they are in. */
function hiddenPaths({ dataDir, masterKeyFile }: Partial<SandboxConfig>): string[] {
  const installation = findPackageJSON('.', import.meta.url)
  return [installation && path.dirname(installation), dataDir, masterKeyFile].flatMap((hidden) => hidden ?? [])
}

/** Tries bubblewrap with the command that is used later: some machines have it, but forbid user namespaces. */
export async function tryBubblewrap(sandbox: Sandbox): Promise<boolean> {
  sandbox.tools.bwrap ??= findTool('bwrap', sandbox.folders)
  let trial = await runTrial(sandbox)
  // Once more: the failure may have been temporary.
  if (typeof trial === 'string') trial = await runTrial(sandbox)
  sandbox.nextTryMs = performance.now() + RETRY_AFTER_MS
  if (typeof trial === 'string') {
    sandbox.problem = trial
    return false
  }
  Object.assign(sandbox, trial, { bubblewrap: true, problem: undefined })
  return true
}

/**
 * Starts ffmpeg in bubblewrap, or where that has worked before a smaller program.
 * @returns why it did not start, as text, or what is known now
 */
async function runTrial(sandbox: Sandbox): Promise<string | Pick<Sandbox, 'visible' | 'ffmpegVersion'>> {
  const { cacheDir, hidden } = sandbox
  const { bwrap, ffmpeg, ffprobe, prlimit } = sandbox.tools
  if (!bwrap) return 'it is not installed'
  if (!systemCallFilter()) return `Reelgate has no system call filter for ${process.arch}`
  const programs = [ffmpeg, ffprobe, prlimit]
  const known = cacheDir === undefined ? undefined : readKnownTools(cacheDir, programs)
  const libraries = known?.libraries ?? (await Promise.all(programs.map(listLibraries))).flat()
  const tried = { ...sandbox, visible: visiblePaths(libraries, hidden), bubblewrap: true }
  const { version, end } = known ? await tryAgain(tried, known.ffmpegVersion) : await askVersion(tried)
  if (version === undefined) return end.stderr.trim().split('\n')[0] || `ffmpeg ended with ${end.exitCode} in it`
  if (cacheDir !== undefined && !known) keepKnownTools(cacheDir, programs, { libraries, ffmpegVersion: version })
  return { visible: tried.visible, ffmpegVersion: version }
}

async function tryAgain(sandbox: SandboxTools, ffmpegVersion: string): Promise<VersionAnswer> {
  const end = await runSandboxed(sandbox, { tool: 'prlimit', args: ['--version'], limits: TRIAL_LIMITS })
  return { version: end.exitCode === 0 ? ffmpegVersion : undefined, end }
}

/** Whether uploaded files may be opened now. Bubblewrap that has not worked yet is tried again, at most every few seconds. */
export async function isEncodingAllowed(sandbox: Sandbox): Promise<boolean> {
  if (!sandbox.bubblewrap && performance.now() >= sandbox.nextTryMs) await tryBubblewrap(sandbox)
  return sandbox.bubblewrap || sandbox.weak
}

/** What is wrong with a sandbox, and each way to fix it, as sentences for the operator. */
export type SandboxAdvice = { effect: string; cures: readonly string[] }

/** @returns undefined where bubblewrap runs */
export function sandboxAdvice({ bubblewrap, weak, problem, tools }: Sandbox): SandboxAdvice | undefined {
  if (bubblewrap) return undefined
  const noSandbox = `The sandbox around ffmpeg, bubblewrap, does not run here: ${problem}.`
  const install = tools.bwrap ? [] : ['Install it: apt-get install bubblewrap.']
  const container = `In a container, start it with ${CONTAINER_FLAGS}; docs/operations.md has the rest (The sandbox).`
  const risk = 'a file made to attack ffmpeg can then reach all that Reelgate can: its key, its data, the network.'
  if (weak)
    return { effect: `${noSandbox} REELGATE_SANDBOX=weak: ffmpeg runs without it; ${risk}`, cures: [...install, container] }
  return {
    effect: `${noSandbox} No upload is encoded and no image opened until it does; uploads wait.`,
    cures: [...install, container, `Or set REELGATE_SANDBOX=weak, and ffmpeg runs without it: ${risk}`],
  }
}

/** Bubblewrap needs new namespaces and mounts in them, which Docker and Podman forbid by default. */
const CONTAINER_FLAGS = '--security-opt seccomp=unconfined --security-opt apparmor=unconfined'

/** The version of ffmpeg, run without bubblewrap. @throws Failure `unavailable` when it does not start */
export async function readVersion({ tools }: Pick<Sandbox, 'tools'>): Promise<string> {
  const { version } = await askVersion({ tools })
  if (version === undefined)
    throw new Failure('unavailable', 'ffmpeg is installed but does not start: run ffmpeg -version to see why')
  return version
}

type VersionAnswer = { version: string | undefined; end: MediaEnd }

async function askVersion(sandbox: SandboxTools): Promise<VersionAnswer> {
  const output = collect(64 * 1024)
  const end = await runSandboxed(sandbox, { tool: 'ffmpeg', args: ['-version'], stdout: output.reader, limits: TRIAL_LIMITS })
  const [, version] = end.exitCode === 0 ? (/^ffmpeg version (\S+)/.exec(output.bytes().toString('utf8')) ?? []) : []
  return { version, end }
}
