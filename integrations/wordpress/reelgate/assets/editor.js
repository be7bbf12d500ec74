// The block: a picker with search and upload, and what it shows in the editor. Plain JavaScript with WordPress's own packages, no build step.
;((wp) => {
  const { createElement: el, useEffect, useState, Fragment } = wp.element
  const { __, sprintf } = wp.i18n
  const { InspectorControls, useBlockProps } = wp.blockEditor
  const { Button, Notice, PanelBody, Placeholder, SearchControl, Spinner, TextControl, ToggleControl } = wp.components
  const { server, mayPick, vdo } = window.reelgateEditor

  const SEARCH_AFTER_MS = 300

  function clock(seconds) {
    const whole = Math.round(seconds)
    return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
  }

  function useVideos(search, page, round) {
    const [state, setState] = useState({ videos: [], count: 0 })
    useEffect(() => {
      let isCurrent = true
      const timer = setTimeout(() => {
        wp.apiFetch({ path: `/reelgate/v1/videos?search=${encodeURIComponent(search)}&page=${page}` }).then(
          (found) => isCurrent && setState(found),
          ({ message }) => isCurrent && setState({ videos: [], count: 0, problem: message }),
        )
      }, SEARCH_AFTER_MS)
      return () => {
        isCurrent = false
        clearTimeout(timer)
      }
    }, [search, page, round])
    return state
  }

  function Picker({ onPick }) {
    const [search, setSearch] = useState('')
    const [page, setPage] = useState(1)
    const [round, setRound] = useState(0)
    const [isUploading, setUploading] = useState(false)
    const { videos, count, problem } = useVideos(search, page, round)
    const find = (text) => {
      setSearch(text)
      setPage(1)
    }
    return el(
      Fragment,
      null,
      el(SearchControl, { label: __('Search for a video', 'reelgate'), value: search, onChange: find }),
      problem && el(Notice, { status: 'error', isDismissible: false }, problem),
      el(
        'ul',
        { style: { listStyle: 'none', margin: 0, padding: 0, maxHeight: 320, overflow: 'auto', width: '100%' } },
        videos.map((video) =>
          el(
            'li',
            { key: video.id, style: { margin: 0 } },
            el(
              Button,
              {
                onClick: () => onPick(video),
                style: { width: '100%', height: 'auto', padding: 6, gap: 10, justifyContent: 'flex-start' },
              },
              video.poster
                ? el('img', { src: video.poster, alt: '', width: 80, height: 45, loading: 'lazy', style: { objectFit: 'cover' } })
                : el('span', { style: { width: 80, height: 45, background: '#111214' } }),
              el(
                'span',
                { style: { textAlign: 'left' } },
                video.title,
                el('br'),
                el('small', null, video.status === 'ready' ? clock(video.length) : video.status),
              ),
            ),
          ),
        ),
      ),
      count > 20 &&
        el(
          'p',
          null,
          el(Button, { variant: 'secondary', disabled: page === 1, onClick: () => setPage(page - 1) }, __('Newer', 'reelgate')),
          ' ',
          el(
            Button,
            { variant: 'secondary', disabled: page * 20 >= count, onClick: () => setPage(page + 1) },
            __('Older', 'reelgate'),
          ),
        ),
      isUploading
        ? el(Uploader, { onSent: (id, title) => onPick({ id, title }), onListed: () => setRound(round + 1) })
        : el(Button, { variant: 'secondary', onClick: () => setUploading(true) }, __('Upload a video', 'reelgate')),
    )
  }

  /** The server's own element, with a token for one file. */
  function Uploader({ onSent, onListed }) {
    const [problem, setProblem] = useState('')
    const [isLoaded, setLoaded] = useState(Boolean(window.customElements.get('reelgate-uploader')))
    const [place, setPlace] = useState(null)
    useEffect(() => {
      if (isLoaded) return
      const script = document.createElement('script')
      script.src = `${server}/v2/uploader.js`
      script.onload = () => setLoaded(true)
      script.onerror = () => setProblem(__('The server could not be reached from your browser.', 'reelgate'))
      document.head.append(script)
    }, [isLoaded])
    useEffect(() => {
      if (!place || !isLoaded) return
      const uploader = document.createElement('reelgate-uploader')
      uploader.setAttribute('server', server)
      uploader.addEventListener('tokenneeded', () => {
        wp.apiFetch({ path: '/reelgate/v1/upload-token', method: 'POST' }).then(
          ({ token }) => uploader.setAttribute('token', token),
          ({ message }) => setProblem(message),
        )
      })
      uploader.addEventListener('uploadcomplete', ({ detail }) => {
        onListed()
        onSent(detail.videoId, detail.file.name)
      })
      place.replaceChildren(uploader)
    }, [place, isLoaded])
    return el(
      Fragment,
      null,
      problem && el(Notice, { status: 'error', isDismissible: false }, problem),
      isLoaded ? el('div', { ref: setPlace }) : el(Spinner),
    )
  }

  function Edit({ attributes, setAttributes }) {
    const { id, title, width, height, no_annotate: isPlain, autoplay, litemode } = attributes
    const [shownTitle, setShownTitle] = useState('')
    const placeholder = { icon: 'video-alt3', label: 'Reelgate' }
    const toggle = (name, label, help, value) =>
      el(ToggleControl, { label, help, checked: Boolean(value), onChange: (isOn) => setAttributes({ [name]: isOn }) })
    return el(
      'div',
      useBlockProps(),
      el(
        InspectorControls,
        null,
        el(
          PanelBody,
          { title: __('Video', 'reelgate') },
          el(TextControl, {
            label: __('Id of the video', 'reelgate'),
            value: id ?? '',
            onChange: (text) => setAttributes({ id: text.trim() }),
          }),
          el(TextControl, {
            label: __('Greatest width in pixels', 'reelgate'),
            value: width ?? '',
            onChange: (text) => setAttributes({ width: text }),
          }),
          el(TextControl, {
            label: __('Height in pixels, or auto', 'reelgate'),
            value: height ?? '',
            onChange: (text) => setAttributes({ height: text }),
          }),
          toggle('no_annotate', __('Without a watermark', 'reelgate'), '', isPlain),
          toggle('autoplay', __('Play by itself, muted', 'reelgate'), '', autoplay),
          toggle(
            'litemode',
            __('Load only the poster before it is played', 'reelgate'),
            __('For pages with many videos.', 'reelgate'),
            litemode,
          ),
        ),
      ),
      id || title
        ? el(
            Placeholder,
            {
              ...placeholder,
              instructions: shownTitle || title || sprintf(__('Video %s. It plays on the page.', 'reelgate'), id),
            },
            el(
              Button,
              { variant: 'secondary', onClick: () => setAttributes({ id: undefined, title: undefined }) },
              __('Choose another video', 'reelgate'),
            ),
          )
        : el(
            Placeholder,
            { ...placeholder, instructions: __('Choose a video of your server, or upload one.', 'reelgate') },
            server && mayPick
              ? el(
                  'div',
                  { style: { width: '100%' } },
                  el(Picker, {
                    onPick: (video) => {
                      setShownTitle(video.title)
                      setAttributes({ id: video.id })
                    },
                  }),
                )
              : el(
                  Notice,
                  { status: 'warning', isDismissible: false },
                  server
                    ? __('You may not add files to this site. Enter the id of a video in the settings of the block.', 'reelgate')
                    : __('Enter the address of your server in Settings → Reelgate.', 'reelgate'),
                ),
          ),
    )
  }

  const text = { type: 'string' }
  const flag = { type: 'boolean' }
  const length = { type: ['string', 'number'] }
  const attributes = { id: text, title: text, width: length, height: length, no_annotate: flag, autoplay: flag, litemode: flag }
  const block = { apiVersion: 2, category: 'media', icon: 'video-alt3', edit: Edit, save: () => null }
  wp.blocks.registerBlockType('reelgate/video', { ...block, title: 'Reelgate', attributes, keywords: ['video', 'lesson'] })
  // Posts of the hosted service keep their block; new ones get ours.
  if (vdo)
    wp.blocks.registerBlockType('vdo/block', {
      ...block,
      title: __('Video of the hosted service', 'reelgate'),
      attributes: { ...attributes, vdo_theme: text, vdo_version: text },
      supports: { inserter: false },
    })
})(window.wp)
