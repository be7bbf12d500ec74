// The videos of a page. Each asks for its one-time password when it comes into sight, with the tag that the page was rendered with; so it
// does not matter how long a cache has had the page.
;(() => {
  const { server, ajax, speeds, texts } = window.reelgateSite
  /** How often, and how long apart, the site is asked whether a video that was watched is completed: the server counts what is reported later. */
  const ASK_TIMES = 5
  const ASK_EVERY_MS = 15_000
  /** Of the video: as the server counts it. */
  const COMPLETED_SHARE = 0.9
  /** No others: who may not write scripts may still write the markup of a lesson by hand. */
  const OPTIONS = ['autoplay', 'loop', 'litemode', 'controls', 'ccLanguage']

  let scriptLoading

  function loadPlayer() {
    scriptLoading ??= new Promise((resolve, reject) => {
      const script = document.createElement('script')
      script.src = `${server}/v2/player.js`
      script.onload = resolve
      script.onerror = () => {
        scriptLoading = undefined
        script.remove()
        reject(new Error('the player has not loaded'))
      }
      document.head.append(script)
    })
    return scriptLoading
  }

  /** @returns the site's answer. @throws an object with code and message */
  async function ask(action, tag) {
    const reply = await fetch(ajax, {
      method: 'POST',
      credentials: 'same-origin',
      body: new URLSearchParams({ action: `reelgate_${action}`, ...tag }),
    })
    const answer = await reply.json()
    if (!reply.ok) throw answer
    return answer
  }

  async function open(place, { tag, player: options }) {
    place.querySelector('.reelgate-message')?.remove()
    try {
      const [{ signedIn, ...video }] = await Promise.all([ask('otp', tag), loadPlayer()])
      show(place, { video, options, tag, signedIn })
    } catch (problem) {
      showProblem(place, problem, () => open(place, { tag, player: options }))
    }
  }

  function show(place, { video, options, tag, signedIn }) {
    const element = document.createElement('reelgate-player')
    for (const [name, value] of Object.entries(video)) element.setAttribute(name, value)
    for (const name of OPTIONS) if (name in options) element.setAttribute(name, options[name])
    element.style.cssText = 'display:block;width:100%;height:100%'
    element.addEventListener('statusChange', async ({ detail: status }) => {
      if (status !== 'otpNeeded') return
      try {
        const { otp } = await ask('otp', tag)
        element.setAttribute('otp', otp)
      } catch (problem) {
        element.remove()
        showProblem(place, problem, () => open(place, { tag, player: options }))
      }
    })
    place.replaceChildren(element)
    element.getPlayer().then((player) => {
      if (speeds.length > 0) player.api.updatePlayerConfig({ playbackSpeedOptions: speeds }).catch(() => {})
      // As high as the video is: a portrait one, too.
      if (place.style.aspectRatio) giveRatio(place, player)
      if (signedIn) reportCompletion(player, tag)
    })
  }

  async function giveRatio(place, player) {
    const { aspectRatio } = await player.api.getMetaData().catch(() => ({}))
    if (aspectRatio > 0) place.style.aspectRatio = String(aspectRatio)
  }

  function reportCompletion({ video, api }, tag) {
    let isAsking = false
    let isCompleted = false
    let isOver = false
    async function check() {
      if (isAsking || isCompleted) return
      isAsking = true
      for (let times = 0; times < ASK_TIMES && !isCompleted && (await mayBeCompleted()); times++) {
        isCompleted = (await ask('completed', tag).catch(() => ({}))).completed === true
        if (!isCompleted) await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS))
      }
      isAsking = false
    }
    /** At its end, too: the rest may have been watched earlier. Read last, for a video pauses just before it ends. */
    async function mayBeCompleted() {
      const covered = (await api.getTotalCovered().catch(() => 0)) / video.duration
      return covered >= COMPLETED_SHARE || isOver
    }
    let lookedAtS = 0
    video.addEventListener('timeupdate', () => {
      if (Math.abs(video.currentTime - lookedAtS) < 5) return
      lookedAtS = video.currentTime
      check()
    })
    video.addEventListener('pause', check)
    video.addEventListener('ended', () => {
      isOver = true
      check()
    })
  }

  function showProblem(place, problem, again) {
    const isAnswer = typeof problem?.message === 'string' && typeof problem?.code === 'string'
    const code = isAnswer ? problem.code : 'offline'
    const message = document.createElement('div')
    const sentence = document.createElement('p')
    message.className = 'reelgate-message'
    message.setAttribute('role', 'alert')
    message.style.cssText =
      'position:absolute;inset:0;display:flex;flex-direction:column;align-items:center;justify-content:center;gap:12px;padding:16px;color:#f2f0ec;text-align:center'
    sentence.textContent = isAnswer ? problem.message : texts.offline
    sentence.style.margin = '0'
    message.append(sentence)
    if (code !== 'refused' && code !== 'foreign-site') {
      const button = document.createElement('button')
      button.type = 'button'
      button.textContent = code === 'reload' ? texts.reload : texts.again
      // Past the browser's cache and, by the address, past the site's: the page is rendered for this visitor now.
      button.addEventListener('click', () => (code === 'reload' ? reload() : again()))
      message.append(button)
    }
    place.replaceChildren(message)
  }

  function reload() {
    const address = new URL(location.href)
    address.searchParams.set('reelgate', Date.now().toString(36))
    location.replace(address)
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue
        seen.unobserve(target)
        open(target, JSON.parse(target.dataset.reelgate))
      }
    },
    { rootMargin: '300px' },
  )

  function findVideos() {
    for (const place of document.querySelectorAll('.reelgate-video:not([data-found])')) {
      place.dataset.found = ''
      seen.observe(place)
    }
  }

  findVideos()
  // Lessons that course plug-ins load later into the page.
  new MutationObserver(findVideos).observe(document.documentElement, { childList: true, subtree: true })
})()
