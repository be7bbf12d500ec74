// The scripts of the pages inside a learning platform, by whose hashes the pages allow them. `page` holds what each needs, as JSON.

/** Asks the frame that stores for tools (LTI client side postMessages 1.0, platform storage). An answer counts from the origin of the platform alone. */
const STORAGE = `
const page = JSON.parse(document.getElementById('page').textContent)
function ask(subject, fields, answered, unanswered) {
  const opener = window.parent === window ? window.opener : window.parent
  let frame
  try { frame = page.frame === '_parent' ? opener : opener?.frames[page.frame] ?? opener } catch { frame = opener }
  const messageId = crypto.randomUUID()
  const timer = setTimeout(finish, 2500)
  function finish(value) {
    clearTimeout(timer)
    removeEventListener('message', receive)
    value === undefined ? unanswered() : answered(value)
  }
  function receive({ data, origin }) {
    if (origin !== page.origin || data?.subject !== subject + '.response' || data.message_id !== messageId) return
    finish(data.error ? undefined : data.value ?? '')
  }
  addEventListener('message', receive)
  frame ? frame.postMessage({ subject, message_id: messageId, key: page.key, ...fields }, page.origin) : finish()
}
`

/** A cookie may do where the platform keeps nothing. */
export const KEEP_SECRET = `${STORAGE}
const go = () => location.replace(page.url)
ask('lti.put_data', { value: page.value }, go, go)
`

export const ASK_STORAGE = `${STORAGE}
const form = document.getElementById('form')
function send(value) {
  form.elements.stored.value = value
  form.submit()
}
ask('lti.get_data', {}, send, () => send(''))
`

export const SUBMIT = `document.getElementById('form').submit()
`

export const CLOSE = `(window.parent === window ? window.opener : window.parent)?.postMessage({ subject: 'org.imsglobal.lti.close' }, '*')
`

export const UPLOADED = `
document.querySelector('reelgate-uploader').addEventListener('uploadcomplete', ({ detail }) => {
  document.getElementById('video').value = detail.videoId
  const choose = document.getElementById('choose')
  choose.disabled = false
  choose.focus()
})
`
