import { createHash } from 'node:crypto'
import { expect, onTestFinished } from 'vitest'
import { getStoredSource } from '../../data-folder.ts'
import { startNginx } from '../../nginx.ts'
import type { SampledTest } from '../../sample.ts'
import { startAlteredPlayer } from './altered-player.ts'
import type { OtherPagesSetup } from './other-pages.ts'

const SIZE_BYTES = 3_000_000
/** Of an upload that was begun: what asks for its offset, and what sends its parts. */
const UPLOAD = /\/api\/uploads\/[0-9a-f]{32}$/

/** A <reelgate-uploader> on a page of another site than the server. */
export function testUploading(test: SampledTest, location: () => OtherPagesSetup) {
  /** Opens the page, with a token that was made for it. @param proxy the page knows Reelgate by its address */
  async function openPage(proxy: { url(): string }) {
    const { tab, putPage, reelgate } = location()
    const { origin } = new URL(putPage('', 'localhost'))
    const response = await reelgate.owner.call('POST', '/api/upload-tokens', { body: { origin } })
    const { token } = (await response.json()) as { token: string }
    await tab.goto(
      putPage(
        `<script src="${proxy.url()}/v2/uploader.js"></script><reelgate-uploader token="${token}"></reelgate-uploader>`,
        'localhost',
      ),
    )
    await tab.run('page', addFile, { name: 'Lesson.mp4', sizeBytes: SIZE_BYTES })
  }

  const uploadState = async () => location().tab.run('page', readUpload, null)

  async function expectStored(videoId: string | null): Promise<void> {
    const stored = await getStoredSource(location().reelgate, videoId ?? '').clear()
    expect(createHash('sha256').update(stored).digest('hex')).toBe(hashOfFile())
  }

  test('P-43: a page of another site uploads a video with a token, through nginx as it comes; by keyboard it is paused and continued', async () => {
    const { tab, reelgate } = location()
    const nginx = await startNginx(() => ({ location: `proxy_pass ${reelgate.url}; proxy_set_header Host $http_host;` }))
    onTestFinished(nginx.remove)
    const proxy = startAlteredPlayer(nginx.url)
    onTestFinished(proxy.close)
    const release = proxy.hold(UPLOAD)
    await openPage(proxy)
    await expect.poll(uploadState).toMatchObject({ state: 'sending', videoId: expect.any(String) })
    while ((await tab.run('page', readFocus, null)) !== 'Pause Lesson.mp4') await tab.press('Tab')
    await tab.press('Enter')
    await expect.poll(uploadState).toMatchObject({ state: 'paused' })
    expect(await tab.run('page', readFocus, null)).toBe('Continue Lesson.mp4')
    release()
    await tab.press('Enter')
    await expect.poll(uploadState).toMatchObject({ state: 'sent', problem: null })
    expect(await tab.run('page', readAnnouncement, null)).toBe('Lesson.mp4 was uploaded.')
    await expectStored((await uploadState()).videoId)
  })

  test('P-44: after its page was closed a file that is chosen again continues its upload, although the page has another token', async () => {
    const proxy = startAlteredPlayer(location().reelgate.url)
    onTestFinished(proxy.close)
    const release = proxy.hold(UPLOAD)
    await openPage(proxy)
    await expect.poll(uploadState).toMatchObject({ state: 'sending', videoId: expect.any(String) })
    const { videoId } = await uploadState()
    release()
    await openPage(proxy)
    await expect.poll(uploadState).toMatchObject({ state: 'sent', videoId })
    await expectStored(videoId)
  })
}

function hashOfFile(): string {
  const bytes = Buffer.alloc(SIZE_BYTES)
  for (let index = 0; index < SIZE_BYTES; index++) bytes[index] = index % 251
  bytes.write('\0\0\0\x18ftypmp42', 'latin1')
  return createHash('sha256').update(bytes).digest('hex')
}

// Run in the page.

/** As if it had been chosen: the same file each time. */
function addFile({ name, sizeBytes }: { name: string; sizeBytes: number }): void {
  const bytes = new Uint8Array(sizeBytes)
  for (let index = 0; index < sizeBytes; index++) bytes[index] = index % 251
  bytes.set(Array.from('\0\0\0\x18ftypmp42', (letter) => letter.charCodeAt(0)))
  document
    .querySelector('reelgate-uploader')
    ?.addFiles([new File([bytes], name, { type: 'video/mp4', lastModified: 1_700_000_000_000 })])
}

function readUpload(): { state: string; videoId: string | null; problem: string | null } {
  const { state = 'none', videoId = null, problem = null } = document.querySelector('reelgate-uploader')?.files[0] ?? {}
  return { state, videoId, problem }
}

/** The name of what has the focus in the element, as a screen reader says it. */
function readFocus(): string {
  const root = document.querySelector('reelgate-uploader')?.shadowRoot
  const ids = root?.activeElement?.getAttribute('aria-labelledby')?.split(' ') ?? []
  return ids.map((id) => root?.getElementById(id)?.textContent).join(' ')
}

function readAnnouncement(): string | undefined {
  return document.querySelector('reelgate-uploader')?.shadowRoot.querySelector('[role=status]')?.textContent
}

type PageElement = { readonly textContent: string; getAttribute(name: string): string | null }
declare const document: {
  querySelector(name: 'reelgate-uploader'): {
    readonly files: readonly { state?: string; videoId?: string; problem?: string }[]
    readonly shadowRoot: {
      readonly activeElement: PageElement | null
      getElementById(id: string): PageElement | null
      querySelector(selector: string): PageElement | null
    }
    addFiles(files: readonly File[]): void
  } | null
}
