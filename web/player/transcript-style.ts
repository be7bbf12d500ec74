/**
 * Loaded with the transcript. Where there is room the player's own box gets smaller, by a border: picture, watermarks and bar move aside
 * together, and no part of the picture is next to the text without its watermark. In a small player the text covers all of it.
 */
export const TRANSCRIPT_CSS = `
.transcript {
  --ink: var(--surface-ink);
  --ink-soft: var(--surface-ink-soft);
  --line: var(--surface-line);
  --lamp: var(--surface-lamp);
  position: fixed;
  inset: 0;
  display: flex;
  flex-direction: column;
  width: auto;
  max-width: none;
  height: auto;
  max-height: none;
  margin: 0;
  padding: 0;
  border: 0;
  background: var(--surface);
  color: var(--ink);
  color-scheme: var(--surface-scheme);
  font-size: 14px;
  line-height: 1.4;
  overflow: hidden;
}
.transcript[hidden] { display: none; }
.transcript .heading { position: static; flex: none; margin: 0; padding-block: 0; padding-inline: 16px 0; }
.transcript h2 { margin: 0; font-size: 15px; }
.transcript :is(select, input) {
  min-height: 36px;
  border: 1px solid color-mix(in srgb, var(--ink) 45%, transparent);
  border-radius: var(--radius-inner);
  background: var(--surface);
  color: inherit;
  font: inherit;
}
.transcript select { max-width: 45%; padding: 0 4px; }
.transcript input { flex: none; margin: 0 16px; padding: 4px 12px; }
.transcript input::placeholder { color: var(--ink-soft); opacity: 1; }
.transcript :is(select, input, ol):focus-visible { outline: 2px solid var(--lamp); outline-offset: -1px; }
.transcript .found { margin: 0; padding: 4px 16px; color: var(--ink-soft); font-size: 13px; }
.transcript .found:empty { padding: 4px 0 0; }
.transcript .found.note { padding: 16px; font-size: inherit; }
.transcript ol {
  flex: 1;
  min-height: 0;
  margin: 0;
  padding: 0 8px 8px;
  list-style: none;
  overflow: auto;
  overscroll-behavior: contain;
  scrollbar-color: color-mix(in srgb, var(--ink) 40%, transparent) transparent;
  scrollbar-width: thin;
}
.transcript li { display: block; content-visibility: auto; contain-intrinsic-size: auto 40px; } /* Chromium counts all list items again for each that is hidden */
.transcript li[hidden] { display: none; }
.transcript li button {
  display: flex;
  gap: 8px;
  width: 100%;
  min-height: 36px;
  padding: 8px;
  border: 0;
  border-radius: var(--radius-inner);
  background: none;
  color: inherit;
  font: inherit;
  text-align: start;
  overflow-wrap: anywhere;
  cursor: pointer;
}
.transcript .time { flex: none; min-width: 3.2em; color: var(--ink-soft); font-variant-numeric: tabular-nums; }
.transcript li button[aria-current] { background: color-mix(in srgb, var(--ink) 10%, transparent); box-shadow: inset 3px 0 var(--lamp); font-weight: 600; }
.transcript li button[aria-current]:dir(rtl) { box-shadow: inset -3px 0 var(--lamp); }
.transcript li button:focus-visible { outline-offset: -2px; }
.transcript mark { background: var(--lamp); color: var(--surface); }
.transcript .follow {
  position: absolute;
  inset: auto 0 12px;
  width: fit-content;
  min-height: 36px;
  margin: 0 auto;
  padding: 4px 16px;
  border: 0;
  border-radius: 18px;
  background: var(--ink);
  color: var(--surface);
  font: inherit;
  font-weight: 600;
  cursor: pointer;
}
.transcript .follow[hidden] { display: none; }
@media (hover: hover) {
  .transcript li button:hover { background: color-mix(in srgb, var(--ink) 8%, transparent); }
}
@media (pointer: coarse) {
  .transcript :is(li button, input, select, .follow) { min-height: 44px; }
  .transcript input { font-size: 16px; } /* below, iPhones zoom in */
}
@media (max-height: 260px) {
  .transcript input { min-height: 32px; }
}
@media (min-width: 640px) and (min-aspect-ratio: 4/5) {
  .transcript { inset-block: 0; inset-inline: auto 0; width: clamp(260px, 36%, 400px); border-inline-start: 1px solid var(--line); }
  [data-transcript] media-controller { box-sizing: border-box; border: 0 solid #000; border-inline-end-width: clamp(260px, 36vw, 400px); }
  [data-transcript] .settings { inset-inline-end: calc(clamp(260px, 36vw, 400px) + 8px); max-width: calc(64% - 16px); }
}
@media (min-width: 640px) and (max-width: 960px) and (min-aspect-ratio: 4/5) {
  [data-transcript] :is(media-volume-range, .float-button, .bar-button.chapter) { display: none; } /* the bar is as narrow as a phone's */
}
@media (min-width: 640px) and (max-width: 720px) and (min-aspect-ratio: 4/5) {
  [data-transcript] media-captions-button { display: none; } /* the settings have them */
}
@media (max-aspect-ratio: 4/5) and (min-height: 440px) {
  .transcript { inset: 45% 0 0; border-block-start: 1px solid var(--line); }
  [data-transcript] media-controller { box-sizing: border-box; border: 0 solid #000; border-bottom-width: 55vh; }
  [data-transcript] .settings { bottom: calc(55% + 64px); max-height: calc(45% - 72px); }
}
`
