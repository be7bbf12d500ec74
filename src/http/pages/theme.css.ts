/** Colours and type of the pages that this server writes itself, dark and light. */
export const THEME_CSS = `:root {
  color-scheme: dark light;
  --paper: #111214; --card: #191b1f; --line: #2a2d33; --ink: #f2f0ec; --ink-soft: #a5a29b; --lamp: #f2a93b;
  font: 15px/1.55 system-ui, sans-serif;
}
@media (prefers-color-scheme: light) {
  :root { --paper: #fbfaf8; --card: #ffffff; --line: #e4e1db; --ink: #1b1c1f; --ink-soft: #63615c; --lamp: #a15c00; }
}
`
