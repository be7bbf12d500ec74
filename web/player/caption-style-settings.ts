import {
  CAPTION_CHOICES,
  CAPTION_STYLE_NAMES,
  type CaptionStyle,
  type CaptionStyleName,
  captionCss,
  captionSizeCss,
  changeCaptionStyle,
  parseCaptionStyle,
  USUAL_CAPTIONS,
} from './caption-style.ts'
import { message } from './language.ts'
import { readSettings, rememberSettings } from './memory.ts'
import type { Setting, SettingsPage } from './settings.ts'

/** The page of the settings menu where a viewer chooses how captions look; applied here, and remembered where storage is allowed. */
export function createCaptionStyleSettings(): SettingsPage {
  const sheet = document.createElement('style')
  const sample = document.createElement('div')
  const sampleText = document.createElement('span')
  let style = parseCaptionStyle(readSettings().captionStyle ?? {})
  sample.className = 'caption-sample'
  sample.ariaHidden = 'true'
  sampleText.textContent = message('caption-style.sample')
  sample.append(sampleText)
  document.head.append(sheet)
  apply()
  return {
    title: message('caption-style'),
    sample,
    settings: () => CAPTION_STYLE_NAMES.map(toSetting),
    actions: [{ label: message('caption-style.reset'), run: () => change(USUAL_CAPTIONS) }],
  }

  function toSetting(name: CaptionStyleName): Setting {
    const { label, choices } = CAPTION_CHOICES[name]
    return {
      name: message(label),
      choices: choices.map((choice, value) => ({ value, label: message(choice.label) })),
      chosen: choices.findIndex(({ id }) => id === style[name]),
      choose(value) {
        const choice = choices[value]
        if (choice) change(changeCaptionStyle(style, name, choice.id))
      },
    }
  }

  function change(next: CaptionStyle) {
    style = next
    rememberSettings({ captionStyle: style })
    apply()
  }

  function apply() {
    const css = captionCss(style)
    sheet.textContent = `::cue { ${css} ${captionSizeCss(style)} }`
    sampleText.style.cssText = css
    sampleText.dataset.size = style.size
  }
}
