// `uploader.js`: the element `<reelgate-uploader token …>`: the visitors of a page upload to the owner's account.

import { rootOfScript } from './player-frame.ts'
import type { ReelgateUploaderElement, UploaderEventMap, UploaderFile, UploaderTexts } from './reelgate.d.ts'
import { createUploadQueue, isUnderWay, type QueuedFile, type UploadQueue } from './upload-queue.ts'
import { createUploaderView, TEXTS, type UploaderView } from './uploader-view.ts'

const root = rootOfScript(document.currentScript, /(player\/)?(v2\/)?uploader\.js$/)

class ReelgateUploader extends HTMLElement implements ReelgateUploaderElement {
  static observedAttributes = ['token', 'multiple', 'accept']
  #texts = TEXTS
  #view: UploaderView | undefined
  readonly #queue: UploadQueue = createUploadQueue(
    { endpoint: () => this.#endpoint(), token: () => this.getAttribute('token') ?? '' },
    {
      onChange: (file) => {
        this.#view?.show(this.#queue.list(), file)
        this.#keepPage(this.#queue.list().some(isUnderWay))
        this.#dispatch('uploadprogress', describe(file))
      },
      onBegun: (file) => this.#dispatch('uploadstart', describe(file)),
      onSent: (file) => {
        this.#view?.announce(file)
        this.#dispatch('uploadcomplete', describe(file))
      },
      onFailed: (file, { status, willRetry }) => {
        this.#view?.announce(file)
        this.#dispatch('uploaderror', { ...describe(file), status, willRetry })
      },
      onTokenNeeded: () => this.#dispatch('tokenneeded', undefined),
    },
  )

  get files(): readonly UploaderFile[] {
    return this.#queue.list().map(describe)
  }

  get texts(): UploaderTexts {
    return this.#texts
  }

  set texts(texts: Partial<UploaderTexts>) {
    this.#texts = { ...TEXTS, ...texts }
    this.#show()
  }

  addFiles(files: Iterable<File>): void {
    void this.#queue.add(files)
  }

  connectedCallback() {
    if (!this.shadowRoot) this.attachShadow({ mode: 'open' })
    this.#show()
    window.addEventListener('online', this.#continue)
  }

  /** A page may move the element within itself, which interrupts nothing. */
  disconnectedCallback() {
    queueMicrotask(() => {
      if (this.isConnected) return
      window.removeEventListener('online', this.#continue)
      this.#queue.pauseAll()
      this.#keepPage(false)
    })
  }

  attributeChangedCallback(name: string) {
    if (name === 'token') this.#continue()
    else this.#show()
  }

  #endpoint(): string {
    const server = this.getAttribute('server')
    return new URL('api/uploads', server ? new URL(`${server.replace(/\/*$/, '')}/`, document.baseURI) : root).href
  }

  readonly #continue = () => this.#queue.continueAll()

  #show() {
    if (!this.shadowRoot) return
    this.#view = createUploaderView(this.shadowRoot, {
      texts: this.#texts,
      isMultiple: this.hasAttribute('multiple'),
      accept: this.getAttribute('accept') ?? 'video/*,.mkv,.ts,.mts,.m2ts,.mxf',
      queue: this.#queue,
    })
    for (const file of this.#queue.list()) this.#view.show(this.#queue.list(), file)
  }

  readonly #ask = (event: BeforeUnloadEvent) => event.preventDefault()

  /** The browser asks before it leaves a page that is uploading. */
  #keepPage(isBusy: boolean) {
    if (isBusy) window.addEventListener('beforeunload', this.#ask)
    else window.removeEventListener('beforeunload', this.#ask)
  }

  #dispatch<Name extends keyof UploaderEventMap>(name: Name, detail: UploaderEventMap[Name]['detail']) {
    this.dispatchEvent(new CustomEvent(name, { detail }))
  }
}

function describe({ file, state, sentBytes, videoId, problem }: QueuedFile): UploaderFile {
  return { file, state, sentBytes, videoId, problem }
}

if (!customElements.get('reelgate-uploader')) customElements.define('reelgate-uploader', ReelgateUploader)
