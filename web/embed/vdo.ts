// The script of older embeds: `vdo.add({o: OTP})` fills the element `#vdo<OTP>`, `vdo.add({otp, playbackInfo, container})` the
// container. It runs in pages of other sites as a plain script, so all of it is in one function and it leaves nothing behind but `vdo`.

/** What a page says. Options of the player go with it; what else there is, such as the hosted service's `theme`, has no meaning here. */
type Added = { o?: string; otp?: string; playbackInfo?: string; container?: Element | string | null; [option: string]: unknown }

/** The snippets of those days put a `vdo` into the page whose `add` only remembers, in `d`, what is to be done once the script is here. */
type Vdo = { add?: (added: Added) => void; d?: Added[] }

;(() => {
  const page: Window & { vdo?: Vdo } = window
  const root = rootOf(document.currentScript)
  const vdo = page.vdo ?? {}
  const remembered = vdo.d ?? []
  page.vdo = Object.assign(vdo, { add, d: [] })
  for (const added of remembered) add(added)

  function add(added: Added) {
    const otp = added.otp ?? added.o ?? ''
    const put = () => containerOf(added, otp)?.replaceChildren(frameOf(added, otp))
    // A script in the page's head comes before the element that it fills.
    if (document.readyState === 'loading' && !containerOf(added, otp)) document.addEventListener('DOMContentLoaded', put)
    else put()
  }

  function containerOf({ container }: Added, otp: string): Element | null {
    if (container instanceof Element) return container
    return typeof container === 'string' ? document.querySelector(container) : document.getElementById(`vdo${otp}`)
  }

  function frameOf(added: Added, otp: string): HTMLIFrameElement {
    const address = new URL('player/', root)
    address.searchParams.set('otp', otp)
    for (const option of ['playbackInfo', 'autoplay', 'loop', 'controls', 'primaryColor', 'ccLanguage', 'litemode']) {
      if (added[option] !== undefined) address.searchParams.set(option, String(added[option]))
    }
    const frame = document.createElement('iframe')
    frame.title = 'Film'
    frame.allow = 'encrypted-media; fullscreen; autoplay'
    frame.referrerPolicy = 'strict-origin' // a whitelist asks which site this is
    // As high as a container that has a height; in one without, as wide as it is and in the form of most films.
    frame.style.cssText = 'display:block;border:0;width:100%;height:100%;aspect-ratio:16/9'
    frame.src = address.href
    return frame
  }

  /** Where this installation is: above the folder that the script came from. */
  function rootOf(running: HTMLOrSVGScriptElement | null): string {
    const own =
      running instanceof HTMLScriptElement ? running : document.querySelector<HTMLScriptElement>('script[src*="/playerAssets/"]')
    return (own?.src ?? '').replace(/\/playerAssets\/.*$/, '/')
  }
})()
